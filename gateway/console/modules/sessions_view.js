// The side list: all sessions with their state and news, a search, and what concerns the whole page.

import { age } from "./event_words.js";
import { go, place } from "./place.js";
import {
  attempt,
  hasNews,
  link,
  logout,
  may,
  me,
  moreSessions,
  questions,
  readSessions,
  searchSessions,
  sessionList,
} from "./store.js";
import { useEffect, useState } from "../vendor.js";
import { Mark } from "./login_view.js";
import { NoticeButton } from "./notices.js";
import { ThemeButton } from "./theme.js";
import { IconButton, Icon, Text, html } from "./ui.js";

const SEARCH_MS = 250;

export function SessionsView({ onChosen, onHelp }) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState(null);
  useEffect(() => {
    if (!words.trim()) return setFound(null);
    let isCurrent = true;
    const timer = setTimeout(async () => {
      const rows = await attempt(() => searchSessions(words.trim()));
      if (isCurrent && rows) setFound(rows);
    }, SEARCH_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [words]);
  const open = (session) => {
    go("talk", session);
    onChosen();
  };
  const submit = (event) => {
    event.preventDefault();
    if (words.trim()) open(words.trim());
    setWords("");
  };
  const rows = found ?? sessionList.value;
  return html`<div class="side-inner">
    <header class="brand">
      <${Mark} />
      <div>
        <strong>hermes</strong>
        <div class="dim small">${me.value.owner || me.value.name}</div>
      </div>
      <span class=${`link-dot ${link.value}`} title=${LINKS[link.value]}></span>
    </header>
    <form class="search" role="search" onSubmit=${submit}>
      <${Icon} name="search" />
      <input
        type="search"
        aria-label="Search sessions, or name a new one"
        placeholder="Search or new name"
        value=${words}
        onInput=${(event) => setWords(event.target.value)}
      />
      <${IconButton} icon="plus" label="New session" onClick=${() => open(words.trim() || freshName())} />
    </form>
    <nav class="sessions" aria-label="Sessions">
      <ul>
        ${rows.map((row) => html`<${SessionRow} key=${row.session} row=${row} onOpen=${open} />`)}
      </ul>
      ${found && !rows.length && html`<p class="dim side-note">No session has these words. Enter begins one of this name.</p>`}
      ${
        !found &&
        moreSessions.value &&
        html`<button type="button" class="quiet wide" onClick=${() => readSessions(moreSessions.value)}>Earlier sessions</button>`
      }
    </nav>
    <footer class="side-foot">
      ${
        may("operate") &&
        html`<a class="foot-link" href="#/watch" aria-current=${place.value.view === "watch" ? "page" : undefined} onClick=${onChosen}>
        <${Icon} name="watch" /> Watch
        ${questions.value.length > 0 && html`<span class="count" title="open questions">${questions.value.length}</span>`}
      </a>`
      }
      <span class="foot-buttons">
        <${NoticeButton} />
        <${ThemeButton} />
        <${IconButton} icon="help" label="Keys and help (?)" onClick=${onHelp} />
        <${IconButton} icon="leave" label="Log out" onClick=${logout} />
      </span>
    </footer>
  </div>`;
}

const LINKS = {
  connecting: "connecting",
  up: "connected",
  back: "connected again",
  away: "the gateway does not answer",
  waiting: "the supervisor is away",
};

function SessionRow({ row, onOpen }) {
  const isCurrent = place.value.view === "talk" && place.value.session === row.session;
  const asks = questions.value.some((question) => question.session === row.session);
  const state = asks ? "asks" : (STATES[row.state] ?? row.state);
  return html`<li>
    <a
      class=${`session-row ${hasNews(row) && !isCurrent ? "news" : ""}`}
      href=${`#/talk/${encodeURIComponent(row.session)}`}
      aria-current=${isCurrent ? "page" : undefined}
      onClick=${(event) => {
        event.preventDefault();
        onOpen(row.session);
      }}
    >
      <span class=${`dot ${asks ? "asking" : row.state === "at rest" ? "rest" : row.state}`}></span>
      <${Text} class="session-name" of=${row.session} />
      <span class="session-facts small dim">
        ${state && html`<span>${state}</span>`}
        ${row.waiting > 0 && html`<span>${row.waiting} waiting</span>`}
        ${!state && row.last_at && html`<span>${ago(row.last_at)}</span>`}
      </span>
      ${hasNews(row) && !isCurrent && html`<span class="news-dot"><span class="unseen">has news</span></span>`}
    </a>
  </li>`;
}

// A session that rests says when it was last used instead.
const STATES = { occupied: "running", held: "held", free: "", "at rest": "" };

function ago(at) {
  const seconds = Math.max(0, Math.floor(Date.now() / 1000 - at));
  return seconds < 60 ? "now" : age(seconds).split(" ")[0];
}

/** A name for a conversation that was not named: the day and a number of four digits. */
function freshName() {
  const day = new Date().toISOString().slice(5, 10);
  return `chat-${day}-${String(crypto.getRandomValues(new Uint16Array(1))[0] % 10_000).padStart(4, "0")}`;
}
