// A tool call: one line, which unfolds to its arguments and its result. Both are read when they are wanted, and dropped after.

import { toolCall } from "./actions.js";
import { argumentList, argumentsInShort, grouped } from "./event_words.js";
import { neutral } from "./shown_text.js";
import { attempt } from "./store.js";
import { useEffect, useState } from "../vendor.js";
import { Icon, html } from "./ui.js";

const SIGNS = { running: "·", ok: "✔", failed: "✘", cut: "■" };
const STATES = { running: "is running", ok: "finished", failed: "failed", cut: "was stopped" };
// More is shown on demand: a result may be a megabyte.
const SHOWN_MAX = 20_000;

export function ToolView({ tool, turn }) {
  const [isOpen, setOpen] = useState(false);
  const took = [tool.ended, `${grouped(tool.ms)} ms`].filter(Boolean).join(" · ");
  const facts = { running: "", cut: "stopped" }[tool.state] ?? took;
  return html`<div class=${`tool ${tool.state}`}>
    <button type="button" class="tool-line" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      <span class="tool-sign" aria-hidden="true">${SIGNS[tool.state]}</span>
      <span class="tool-name">${neutral(tool.name)}</span>
      <span class="unseen">${STATES[tool.state]}</span>
      <span class="tool-summary" dir="auto">${argumentsInShort(tool.summary)}</span>
      <span class="tool-facts">${facts}</span>
      <${Icon} name="fold" />
    </button>
    ${tool.state === "running" && tool.note && !isOpen && html`<pre class="tool-note">${neutral(tool.note)}</pre>`}
    ${isOpen && html`<${ToolDetails} tool=${tool} turn=${turn} state=${tool.state} />`}
  </div>`;
}

/** `state` is a property of its own: a call that ends while it is unfolded is read again. */
function ToolDetails({ tool, turn, state }) {
  const [row, setRow] = useState(null);
  useEffect(() => {
    if (tool.arguments !== undefined) return setRow(tool);
    let isCurrent = true;
    attempt(async () => {
      const { attempts } = await toolCall(turn, tool.call);
      // A later attempt may have made a call of the same name.
      if (isCurrent) setRow(attempts.find((each) => each.attempt === tool.attempt) ?? attempts[0]);
    });
    return () => (isCurrent = false);
  }, [state]);
  const given = argumentList(row?.arguments ?? tool.summary);
  const result = row?.result ?? tool.note;
  return html`<div class="tool-details">
    <dl>
      ${given.map(
        ([name, value]) =>
          html`<div key=${name}><dt>${neutral(name) || "arguments"}</dt><dd><pre tabindex="0">${neutral(value)}</pre></dd></div>`,
      )}
    </dl>
    <${Result} text=${result} isRunning=${state === "running"} isRead=${Boolean(row)} />
  </div>`;
}

function Result({ text, isRunning, isRead }) {
  const [isWhole, setWhole] = useState(false);
  if (!text) return html`<p class="dim small">${isRunning ? "no output yet" : isRead ? "no output" : "reading …"}</p>`;
  const shown = isWhole ? text : text.slice(0, SHOWN_MAX);
  return html`<div class="tool-result">
    <p class="dim small">${isRunning ? "last output" : "result"}</p>
    <pre tabindex="0" dir="auto">${neutral(shown)}</pre>
    ${
      shown.length < text.length &&
      html`<button type="button" class="quiet"
          onClick=${() => setWhole(true)}>Show all ${grouped(text.length)} characters</button>`
    }
  </div>`;
}
