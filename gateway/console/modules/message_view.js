// What a person said: a text, or a clip with its transcript, which can be played again.

import { retryClip } from "./actions.js";
import { grouped } from "./event_words.js";
import { oneLine } from "./shown_text.js";
import { may } from "./store.js";
import { useState } from "../vendor.js";
import { IconButton, Text, html } from "./ui.js";

const SHOWN_MAX = 3_000;

export function MessageView({ message, onEdit, onWhy }) {
  if (!message || !(message.text || message.kind === "voice")) {
    return html`<div class="you"><p class="bubble dim">(said earlier)</p></div>`;
  }
  return html`<div class="you">
    <div class="bubble">
      ${message.kind === "voice" && html`<${Clip} message=${message.id} />`}
      <${Said} text=${message.text || "(clip)"} />
    </div>
    <div class="you-tools">
      ${
        onEdit &&
        may("talk") &&
        html`<${IconButton} icon="edit" label="Edit: ask this otherwise, in a branch" onClick=${() => onEdit(message)} />`
      }
      <${IconButton} icon="why" label="Why: the history of this message" onClick=${() => onWhy(message.id)} />
    </div>
  </div>`;
}

/** A message of a megabyte is no reason to draw one. */
export function Said({ text }) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > SHOWN_MAX && !isWhole;
  return html`<${Text} tag="p" class="said" of=${isLong ? `${text.slice(0, SHOWN_MAX)}…` : text} />
    ${
      isLong &&
      html`<button type="button" class="quiet"
        onClick=${() => setWhole(true)}>Show all ${grouped(text.length)} characters</button>`
    }`;
}

/** The sound itself is read when it is wanted. */
function Clip({ message }) {
  const [isOpen, setOpen] = useState(false);
  if (!isOpen) {
    return html`<button type="button" class="clip-play" onClick=${() => setOpen(true)} aria-label="Play the clip">
      <span aria-hidden="true">🎙️ ▸</span>
    </button>`;
  }
  return html`<audio class="clip" controls autoplay src=${`/api/messages/${encodeURIComponent(message)}/clip`}></audio>`;
}

/** A message that ended without a turn: dropped, or not understood. */
export function EndedMessageView({ message, onWhy }) {
  if (message.state === "not understood") {
    return html`<div class="aside fault">
      <p><span aria-hidden="true">🎙️ </span>Not understood: <${Text} of=${oneLine(message.reason)} /></p>
      <p class="dim small"><${Text} of=${oneLine(message.hint)} /></p>
      <p class="aside-tools">
        ${may("talk") && html`<button type="button" class="quiet" onClick=${() => retryClip(message.id)}>Transcribe again</button>`}
        <button type="button" class="quiet" onClick=${() => onWhy(message.id)}>Why</button>
      </p>
    </div>`;
  }
  return html`<p class="aside dim">– taken back: <${Text} of=${oneLine(message.text) || "a clip"} /></p>`;
}
