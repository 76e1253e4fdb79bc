// Notices of the system while the page is hidden: a turn has ended, or an agent asks. And the title of the tab.

import { keep, kept } from "./kept.js";
import { cut, oneLine } from "./shown_text.js";
import { questions, sessions, tell } from "./store.js";
import { effect, signal, untracked } from "../vendor.js";
import { IconButton, html } from "./ui.js";

const isWanted = signal(kept("notices", false));
const canNotify = "Notification" in window;
const TITLE = "hermes";
const ENDS = new Set(["turn.done", "turn.failed", "turn.interrupted"]);

export function NoticeButton() {
  if (!canNotify) return null;
  const isOn = isWanted.value && Notification.permission === "granted";
  const toggle = async () => {
    if (isOn) return set(false);
    const answer = await Notification.requestPermission();
    if (answer !== "granted") {
      tell(
        "The browser does not allow notices of this page",
        "Allow them in the settings of the site, then switch them on again",
      );
    }
    return set(answer === "granted");
  };
  const label = isOn ? "Notices are on: switch off" : "Notices when a turn ends or asks: switch on";
  return html`<${IconButton} icon="bell" class=${isOn ? "on" : ""} label=${label} aria-pressed=${isOn} onClick=${toggle} />`;
}

function set(value) {
  isWanted.value = value;
  keep("notices", value);
}

/** Called with every durable event of the sessions that are open in this page. */
export function noticeOfEvent({ session }, event) {
  if (ENDS.has(event.type)) notify(session, ENDED[event.type](event), `${session} turn`);
  if (event.type === "question.asked") notify(session, `asks: ${cut(oneLine(event.text), 120)}`, `${session} question`);
}

const ENDED = {
  "turn.done": ({ text }) => cut(oneLine(text), 140) || "has answered",
  "turn.failed": ({ error }) => `failed: ${cut(oneLine(error), 120)}`,
  "turn.interrupted": () => "was interrupted",
};

async function notify(session, words, tag) {
  if (!document.hidden || !isWanted.value || !canNotify || Notification.permission !== "granted") return;
  const options = { body: words, tag, icon: "/console/icon-192.png", data: { session } };
  const registration = await navigator.serviceWorker?.getRegistration();
  if (registration) await registration.showNotification(session, options);
  else new Notification(session, options).onclick = () => window.focus();
}

/** Sessions that are not open here: what the watched tables say. */
export function noticeOfTables(isOpen) {
  let asked = null;
  let before = new Map();
  effect(() => {
    const rows = questions.value;
    const known = asked;
    asked = new Set(rows.map((row) => row.question));
    document.title = rows.length ? `(${rows.length}) ${TITLE}` : TITLE;
    if (!known) return;
    for (const row of rows) {
      if (!known.has(row.question) && !isOpen(row.session)) {
        untracked(() => notify(row.session, `asks: ${cut(oneLine(row.text), 120)}`, `${row.session} question`));
      }
    }
  });
  effect(() => {
    const now = sessions.value;
    for (const [name, row] of now) {
      const ended = before.get(name)?.state === "occupied" && row.state !== "occupied";
      if (ended && !isOpen(name)) untracked(() => notify(name, "has news", `${name} turn`));
    }
    before = now;
  });
}
