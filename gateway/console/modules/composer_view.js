// Where a person writes: a draft that survives a reload, what it does to a running turn, the microphone, send and stop.

import { answer, interrupt, sendEdited } from "./actions.js";
import { keep, kept } from "./kept.js";
import { clipFault } from "./recorder.js";
import { isOnline, may, outbox, tell } from "./store.js";
import { signal, useEffect, useLayoutEffect, useRef } from "../vendor.js";
import { DoubtfulRecording, MicrophoneButton, RecordingBar, recording } from "./voice_view.js";
import { IconButton, html } from "./ui.js";

export const MODES = {
  "": "as the session is set",
  interrupt: "stops what runs, then is answered",
  queue: "waits its turn",
  steer: "the running agent takes it in",
  collect: "waits, and is answered together with others",
};
const MEASURED_MAX = 20_000;
const TEXT_BYTES_MAX = 1024 * 1024;
// A finger has no Shift: there Enter is a new line, and the button sends.
const isTouch = matchMedia("(pointer: coarse)").matches;

/** The draft of each session. */
const drafts = new Map();

export function draftOf(session) {
  if (!drafts.has(session)) drafts.set(session, signal(kept(`draft.${session}`, "")));
  return drafts.get(session);
}

/** Kept when a person pauses, and before the page goes away: a long draft is not written at every key. */
export function setDraft(session, text) {
  draftOf(session).value = text;
  unkept.add(session);
  clearTimeout(keepTimer);
  keepTimer = setTimeout(keepDrafts, KEEP_MS);
}

const KEEP_MS = 400;
const unkept = new Set();
let keepTimer = 0;

function keepDrafts() {
  for (const session of unkept) keep(`draft.${session}`, draftOf(session).value);
  unkept.clear();
}

addEventListener("pagehide", keepDrafts);
document.addEventListener("visibilitychange", keepDrafts);

/** `editing` is {turn, message} while other words are written for a message, else null. */
export function ComposerView({ conversation, editing, onEditing }) {
  conversation.shape.value;
  const { session, log } = conversation;
  const box = useRef(null);
  const draft = draftOf(session);
  const busy = useMode(session);
  const question = log.question;
  const turn = log.openTurn;
  useLayoutEffect(() => grow(box.current), [draft.value, recording.value]);
  useEffect(() => {
    if (!isTouch) box.current?.focus({ preventScroll: true });
  }, [session, editing]);

  const send = async (event) => {
    event?.preventDefault();
    const text = draft.value;
    if (!text.trim() || !may("talk")) return;
    if (new TextEncoder().encode(text).length > TEXT_BYTES_MAX) {
      tell("The message has more than 1 MiB", "Put the large part in a file and name the file in the message");
    } else if (editing) {
      if (await sendEdited(session, editing.turn, text)) {
        onEditing(null);
        setDraft(session, "");
      }
    } else if (question) {
      if (!isOnline.value)
        tell("The supervisor is away, and answers are not kept", "Answer when it is back; your words stay here");
      else if (await answer(question, text)) setDraft(session, "");
    } else if (outbox.isFull) {
      tell("100 messages are on their way", "Wait until some are accepted");
    } else {
      outbox.add(session, { text, busy: busy.value });
      setDraft(session, "");
    }
  };
  const keys = (event) => {
    if (event.key !== "Enter" || event.isComposing || event.shiftKey) return;
    if (isTouch && !event.ctrlKey && !event.metaKey) return;
    send(event);
  };
  const sendClip = (clip) => outbox.add(session, { clip, busy: busy.value });
  const isRecording = recording.value === "on";
  const hasText = Boolean(draft.value.trim());
  return html`<form class=${`composer ${editing ? "editing" : ""}`} onSubmit=${send}>
    ${
      editing &&
      html`<div class="composer-note">
      <span>Other words for turn ${editing.turn.number}: they open a branch, this one stays.</span>
      <button type="button" class="quiet" onClick=${() => onEditing(null)}>Cancel</button>
    </div>`
    }
    ${question && !editing && html`<div class="composer-note ask">What you write answers the question. Esc withdraws it.</div>`}
    <${DoubtfulRecording} onRecorded=${sendClip} />
    ${
      isRecording
        ? html`<${RecordingBar} />`
        : html`<textarea
          ref=${box}
          rows="1"
          dir="auto"
          aria-label=${question ? "Answer" : "Message"}
          placeholder=${may("talk") ? placeholder(session, question, turn) : "This token may only watch"}
          disabled=${!may("talk")}
          value=${draft.value}
          onInput=${(event) => setDraft(session, event.target.value)}
          onKeyDown=${keys}
        ></textarea>`
    }
    <div class="composer-row">
      <${ModeChoice} mode=${busy} isBusy=${Boolean(turn)} set=${log.busy} />
      <span class="composer-buttons">
        ${
          turn &&
          may("talk") &&
          html`<${IconButton} icon="stop" class="stop" label="Stop what runs (Esc)" onClick=${() => interrupt(conversation)} />`
        }
        ${(!hasText || isRecording) && may("talk") && html`<${MicrophoneButton} onRecorded=${sendClip} />`}
        ${
          !isRecording &&
          html`<button type="submit" class="icon-button send" aria-label="Send" title="Send (Enter)"
            disabled=${!hasText}><${SendIcon} /></button>`
        }
      </span>
    </div>
  </form>`;
}

const SendIcon = () =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="M12 19V5M5 12l7-7 7 7" /></svg>`;

/** What a message does to a running turn: chosen here for this session, in this browser. */
const modes = new Map();

function useMode(session) {
  if (!modes.has(session)) modes.set(session, signal(kept(`busy.${session}`, "")));
  const mode = modes.get(session);
  return {
    get value() {
      return mode.value;
    },
    set value(chosen) {
      mode.value = chosen;
      keep(`busy.${session}`, chosen);
    },
  };
}

function ModeChoice({ mode, isBusy, set }) {
  const means = MODES[mode.value || set] ?? MODES[""];
  return html`<label class="mode" title=${`While a turn runs, a message ${means}`}>
    <span class="mode-label">${isBusy ? "now" : "while busy"}</span>
    <select value=${mode.value} onChange=${(event) => (mode.value = event.target.value)} aria-label="What a message does to a running turn">
      <option value="">${set ? `default (${set})` : "default"}</option>
      ${Object.keys(MODES)
        .filter(Boolean)
        .map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
    </select>
    <span class="mode-means">${means}</span>
  </label>`;
}

function placeholder(session, question, turn) {
  if (question) return question.asks === "approve" ? "yes, no, or a reason" : "Your answer";
  return turn ? `Add to ${session}` : `Message ${session}`;
}

/** To measure a text of a megabyte takes seconds, and it needs all the room that there is. */
function grow(box) {
  if (!box) return;
  if (box.value.length > MEASURED_MAX) {
    box.style.height = "40dvh";
    return;
  }
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, innerHeight * 0.4)}px`;
}

/** Sound files that were dropped or pasted. */
export function sendFiles(conversation, files) {
  for (const file of files) {
    const fault = clipFault(file);
    if (fault) tell(fault.message, fault.hint);
    else
      outbox.add(conversation.session, {
        clip: { blob: file, name: file.name },
        busy: kept(`busy.${conversation.session}`, ""),
      });
  }
}
