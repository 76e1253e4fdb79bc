// The console: who is logged in, which screen is shown, the keys of the page, and what a screen reader is told.

import { interrupt } from "./actions.js";
import { HelpView } from "./help_view.js";
import { LoginView } from "./login_view.js";
import { noticeOfEvent, noticeOfTables } from "./notices.js";
import { go, place, takeCode } from "./place.js";
import { SessionsView } from "./sessions_view.js";
import { oneLine } from "./shown_text.js";
import {
  announce,
  announcement,
  conversationWith,
  dismiss,
  link,
  me,
  onEvent,
  sessionList,
  start,
  toasts,
  watch,
} from "./store.js";
import { TalkView } from "./talk_view.js";
import { effect, render, useEffect, useState } from "../vendor.js";
import { cancelRecording } from "./voice_view.js";
import { WatchView } from "./watch_view.js";
import { WhyView } from "./why_view.js";
import { IconButton, Text, html } from "./ui.js";

// A screen reader that is given a book says nothing else any more.
const SPOKEN_MAX = 2_000;

function App() {
  if (me.value === null) return html`<main class="login"><p class="dim">connecting …</p></main>`;
  if (!me.value) return html`<${LoginView} /><${Toasts} />`;
  return html`<${Console} />`;
}

function Console() {
  const [isSideOpen, setSideOpen] = useState(false);
  const [why, setWhy] = useState(null);
  const [isHelp, setHelp] = useState(false);
  const { view, session } = place.value;
  useEffect(() => {
    const keys = (event) => pageKeys(event, { isSideOpen, setSideOpen, setHelp });
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, [isSideOpen]);
  return html`<div class=${`app ${isSideOpen ? "side-open" : ""}`}>
    <a class="skip" href="#content" onClick=${skip}>To the conversation</a>
    <aside class="side" aria-label="Sessions and settings">
      <${SessionsView} onChosen=${() => setSideOpen(false)} onHelp=${() => setHelp(true)} />
    </aside>
    <div class="shade" onClick=${() => setSideOpen(false)}></div>
    <div class="content" id="content">
      <${LinkBanner} />
      ${
        view === "watch"
          ? html`<${WatchView} onMenu=${() => setSideOpen(true)} onWhy=${setWhy} />`
          : html`<${TalkView} session=${session} onMenu=${() => setSideOpen(true)} onWhy=${setWhy} />`
      }
    </div>
    <${Toasts} />
    ${why && html`<${WhyView} id=${why} onClose=${() => setWhy(null)} />`}
    ${isHelp && html`<${HelpView} onClose=${() => setHelp(false)} />`}
    <div class="unseen" role="status" aria-live="polite">${announcement}</div>
  </div>`;
}

function skip(event) {
  event.preventDefault();
  document.querySelector(".content .scroll")?.focus();
}

const BANNERS = {
  away: "The gateway does not answer. What you see stays; what you write is kept and sent when it is back.",
  waiting: "The supervisor is away. What you see stays; what you write is kept and sent when it is back.",
  back: "Connected again. Nothing was lost.",
};

function LinkBanner() {
  const words = BANNERS[link.value];
  return html`<div class=${`banner ${words ? link.value : "none"}`} role="status">${words ?? ""}</div>`;
}

function Toasts() {
  return html`<div class="toasts" role="region" aria-label="Notices">
    ${toasts.value.map(
      ({
        id,
        fault,
        hint,
        tone,
      }) => html`<div key=${id} class=${`toast ${tone}`} role=${tone === "fault" ? "alert" : "status"}>
        <div><${Text} tag="p" of=${oneLine(fault)} />${hint && html`<${Text} tag="p" class="dim small" of=${oneLine(hint)} />`}</div>
        <${IconButton} icon="close" label="Dismiss" onClick=${() => dismiss(id)} />
      </div>`,
    )}
  </div>`;
}

function pageKeys(event, { isSideOpen, setSideOpen, setHelp }) {
  if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
  const isTyping = /^(input|textarea|select)$/i.test(event.target.tagName);
  if (event.key === "Escape") {
    if (isSideOpen) setSideOpen(false);
    else if (!cancelRecording() && place.value.view === "talk") interrupt(conversationWith(place.value.session));
  } else if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    setSideOpen(true);
    document.querySelector(".search input")?.focus();
  } else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    event.preventDefault();
    nextSession(event.key === "ArrowDown" ? 1 : -1);
  } else if (!isTyping && event.key === "?") {
    setHelp(true);
  } else if (!isTyping && event.key === "/") {
    event.preventDefault();
    document.querySelector(".composer textarea")?.focus();
  }
}

function nextSession(by) {
  const names = sessionList.value.map((row) => row.session);
  const next = names[names.indexOf(place.value.session) + by];
  if (next) go("talk", next);
}

/** Answers are told whole, when they are: a reader that is interrupted at every word tells nothing. */
function tellReader({ session }, event) {
  if (place.value.view !== "talk" || session !== place.value.session || Date.now() / 1000 - event.at > 60) return;
  const words = SPOKEN[event.type]?.(event);
  if (words) announce(oneLine(words).slice(0, SPOKEN_MAX));
}

const SPOKEN = {
  "turn.done": ({ text }) => `Answer: ${text}`,
  "turn.failed": ({ error }) => `The turn failed: ${error}`,
  "turn.interrupted": () => "The turn was interrupted",
  "question.asked": ({ text, choices }) => `Question: ${text} ${(choices ?? []).join(", ")}`,
  "transcript.ready": ({ text }) => `You said: ${text}`,
  "transcript.failed": ({ reason }) => `Not understood: ${reason}`,
};

function registerWorker() {
  if (!navigator.serviceWorker || !window.isSecureContext) return;
  const address = "/service-worker.js";
  // The one address that the page may load a script from by name.
  const policy = window.trustedTypes?.createPolicy("service-worker", { createScriptURL: () => address });
  navigator.serviceWorker.register(policy ? policy.createScriptURL(address) : address).catch(() => {});
  navigator.serviceWorker.ready.then(({ active }) => {
    const files = performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname);
    const own = files.filter((path) => path.startsWith("/console/"));
    active.postMessage({ shell: ["/", "/manifest.webmanifest", ...new Set(own)] });
  });
  navigator.serviceWorker.addEventListener("message", ({ data }) => data?.session && go("talk", data.session));
}

onEvent(noticeOfEvent);
onEvent(tellReader);
noticeOfTables((session) => place.value.view === "talk" && place.value.session === session);
effect(() => {
  if (me.value)
    watch([
      "sessions",
      "questions",
      ...(me.value.rights.includes("operate") && place.value.view === "watch" ? ["service"] : []),
    ]);
});
const code = takeCode();
document.querySelector("noscript")?.remove();
render(html`<${App} />`, document.getElementById("app"));
start(code);
registerWorker();
