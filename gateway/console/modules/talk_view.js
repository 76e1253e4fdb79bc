// A conversation: its turns, what waits, and where to write. It stays at the newest word unless a person reads back.

import { branchesOf, interrupt, trunkOf } from "./actions.js";
import { ComposerView, draftOf, sendFiles, setDraft } from "./composer_view.js";
import { EndedMessageView } from "./message_view.js";
import { go } from "./place.js";
import { QueueView } from "./queue_view.js";
import { conversationWith, may, outbox, see } from "./store.js";
import { Turn } from "./turn.js";
import { PastTurnView, TurnView } from "./turn_view.js";
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor.js";
import { Icon, IconButton, Text, html } from "./ui.js";

// Items that are drawn; more are drawn, and read, on the way back.
const DRAWN = 40;
// So near to the end a person follows it.
const NEAR_PIXELS = 80;

export function TalkView({ session, onMenu, onWhy }) {
  const conversation = conversationWith(session);
  const [editing, setEditing] = useState(null);
  const [isDropping, setDropping] = useState(false);
  useEffect(() => setEditing(null), [session]);
  const edit = (turn, message) => {
    setEditing({ turn, message });
    setDraft(session, message.text);
  };
  const putBack = (item) => {
    setDraft(session, [draftOf(session).value, item.text].filter(Boolean).join("\n"));
    outbox.remove(item.key);
  };
  const over = (event) => {
    if (!event.dataTransfer?.types.includes("Files") || !may("talk")) return;
    event.preventDefault();
    setDropping(true);
  };
  const dropped = (event) => {
    event.preventDefault();
    setDropping(false);
    sendFiles(conversation, event.dataTransfer.files);
  };
  return html`<main class="talk" onDragOver=${over} onDragLeave=${() => setDropping(false)} onDrop=${dropped}>
    <${TalkHead} conversation=${conversation} onMenu=${onMenu} />
    <${Items} key=${session} conversation=${conversation} onEdit=${edit} onWhy=${onWhy} />
    <div class="bottom">
      <${QueueView} conversation=${conversation} onPutBack=${putBack} />
      <${ComposerView} conversation=${conversation} editing=${editing} onEditing=${setEditing} />
    </div>
    ${isDropping && html`<div class="dropping" aria-hidden="true">Drop a sound file: it is sent, and its words are shown</div>`}
  </main>`;
}

function TalkHead({ conversation, onMenu }) {
  conversation.shape.value;
  const { session, log } = conversation;
  const branches = branchesOf(session);
  const turn = log.openTurn;
  return html`<header class="head">
    <${IconButton} icon="menu" class="menu" label="Sessions" onClick=${onMenu} />
    <div class="head-title">
      <h1><${Text} of=${session} /></h1>
      <p class="small dim">${stateInWords(log)}</p>
    </div>
    ${
      branches.length > 1 &&
      html`<label class="branches">
      <${Icon} name="branch" />
      <span class="unseen">Branch</span>
      <select value=${session} onChange=${(event) => go("talk", event.target.value)}>
        ${branches.map((name) => html`<option key=${name} value=${name}>${name === trunkOf(session) ? `${name} (first)` : name}</option>`)}
      </select>
    </label>`
    }
    ${
      turn &&
      may("talk") &&
      html`<button type="button" class="stop-button" onClick=${() => interrupt(conversation)}><${Icon} name="stop" /> Stop</button>`
    }
  </header>`;
}

function stateInWords({ openTurn, isHeld, lastTurn }) {
  if (openTurn) return { queued: "queued", asking: "asks you" }[openTurn.state] ?? "running";
  return isHeld ? "held" : (lastTurn?.agent ?? "");
}

function Items({ conversation, onEdit, onWhy }) {
  const version = conversation.shape.value;
  const { log } = conversation;
  const [drawn, setDrawn] = useState(DRAWN);
  const frame = useRef(null);
  const isFollowing = useFollowing(frame, conversation);
  useSeen(conversation);
  // Own words are always followed, wherever a person has read before.
  const sent = outbox.of(conversation.session).length;
  const sentBefore = useRef(0);
  useEffect(() => {
    if (sent > sentBefore.current) isFollowing.toEnd();
    sentBefore.current = sent;
  }, [sent]);
  const items = log.items.slice(-drawn);
  const hasMore = log.items.length > items.length || conversation.hasEarlier;
  const more = async () => {
    const before = frame.current.scrollHeight - frame.current.scrollTop;
    if (log.items.length <= drawn) await conversation.readEarlier().catch(() => {});
    setDrawn(drawn + DRAWN);
    // What was read stays where it is.
    requestAnimationFrame(() => (frame.current.scrollTop = frame.current.scrollHeight - before));
  };
  const past = hasMore ? [] : conversation.past.value;
  const isEmpty = !items.length && !past.length;
  const name = `scroll ${isFollowing.value ? "following" : ""}`;
  return html`<div class=${name} ref=${frame} tabindex="0" role="region" aria-label="Conversation">
    <div class="column">
      ${
        hasMore &&
        html`<button type="button" class="quiet wide" disabled=${conversation.isReadingEarlier.value}
          onClick=${more}>⋯ what was said earlier</button>`
      }
      ${past.map((row, index) => html`<${PastTurnView} key=${`past ${index}`} row=${row} />`)}
      ${
        !hasMore &&
        log.begun?.from &&
        html`<p class="divider">
          <a href=${`#/talk/${encodeURIComponent(log.begun.from)}`}>${origin(log.begun)}</a>
        </p>`
      }
      ${isEmpty && html`<${Greeting} conversation=${conversation} />`}
      ${items.map(
        (item) =>
          html`<${Item} key=${item.id} item=${item} version=${version} conversation=${conversation} onEdit=${onEdit} onWhy=${onWhy} />`,
      )}
    </div>
    <div class="end"></div>
    ${!isFollowing.value && html`<button type="button" class="to-end" onClick=${isFollowing.toEnd}><${Icon} name="down" /> newest</button>`}
  </div>`;
}

function origin({ from, through }) {
  return `branched from ${from}, ${through ? `after turn ${through}` : "at its beginning"}`;
}

function Item({ item, version, conversation, onEdit, onWhy }) {
  if (item instanceof Turn)
    return html`<${TurnView} conversation=${conversation} turn=${item} shape=${version} onEdit=${onEdit} onWhy=${onWhy} />`;
  if (item.gap !== undefined)
    return html`<p class="aside dim">⋯ the journal was repaired; ${item.gap} events are missing</p>`;
  return html`<${EndedMessageView} message=${item} version=${version} onWhy=${onWhy} />`;
}

function Greeting({ conversation }) {
  const state = conversation.state.value;
  if (state !== "new") return html`<div class="greeting dim">${state === "following" ? "" : "reading …"}</div>`;
  return html`<div class="greeting">
    <h2><${Text} of=${conversation.session} /> is new</h2>
    <p class="dim">
      Say something. It is answered by a process of its own, which you can stop at any moment, with a proof that nothing of it
      is left.
    </p>
  </div>`;
}

/** What is drawn while the page is shown has been seen: at once, because a person may go elsewhere right after it. */
function useSeen(conversation) {
  const drawn = () => {
    if (!document.hidden) see(conversation.session, conversation.log.seq);
  };
  useLayoutEffect(drawn);
  useEffect(() => {
    document.addEventListener("visibilitychange", drawn);
    return () => document.removeEventListener("visibilitychange", drawn);
  }, [conversation]);
}

/**
 * Keeps the end in sight while it grows, until a person scrolls away from it. Browsers with scroll anchoring do that
 * themselves, by the element `end` (talk.css), and are only looked after: to scroll by script costs more than to draw.
 */
function useFollowing(frame, conversation) {
  const [isFollowing, setFollowing] = useState(true);
  const wants = useRef(true);
  const toEnd = () => {
    wants.current = true;
    setFollowing(true);
    frame.current.scrollTop = frame.current.scrollHeight;
  };
  useLayoutEffect(() => {
    const shown = frame.current;
    const scrolled = () => {
      wants.current = below(shown) < NEAR_PIXELS;
      setFollowing(wants.current);
    };
    const grown = new ResizeObserver(() => {
      if (wants.current && below(shown) >= 1) shown.scrollTop = shown.scrollHeight;
    });
    grown.observe(shown.firstElementChild);
    grown.observe(shown);
    shown.addEventListener("scroll", scrolled, { passive: true });
    shown.scrollTop = shown.scrollHeight;
    return () => {
      grown.disconnect();
      shown.removeEventListener("scroll", scrolled);
    };
  }, [conversation]);
  return { value: isFollowing, toEnd };
}

/** The pixels of a frame that are below what is seen of it. */
const below = ({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight;
