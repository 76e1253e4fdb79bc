// The keys of the console. `KEYS` is also what docs/console.md lists.

import { Dialog, html } from "./ui.js";

export const KEYS = [
  ["Enter", "send; with Shift a new line (on a phone the button sends)"],
  ["Esc", "stop what runs, withdraw a question, cancel a recording; close a dialog"],
  ["/", "write"],
  ["Alt ↑, Alt ↓", "the session above, below"],
  ["Ctrl K", "search sessions"],
  ["?", "this list"],
];

export function HelpView({ onClose }) {
  return html`<${Dialog} title="Keys" onClose=${onClose}>
    <dl class="keys">
      ${KEYS.map(([key, says]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${says}</dd></div>`)}
    </dl>
    <p class="dim small">
      Hold the microphone to talk, or click it and click again. A sound file can be dropped on the conversation. A pencil beside
      your words asks them otherwise, in a branch. A clock shows why: every step of a message or a turn.
    </p>
  <//>`;
}
