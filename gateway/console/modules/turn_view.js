// One turn on the screen: what was asked, the answer as it comes, its tools and questions, and how it ended.

import { retryTurn } from "./actions.js";
import { age, clock, finish, proof, spent } from "./event_words.js";
import { MarkdownView } from "./markdown_view.js";
import { MessageView, Said } from "./message_view.js";
import { QuestionView } from "./question_view.js";
import { oneLine } from "./shown_text.js";
import { isOnline, may } from "./store.js";
import { ToolView } from "./tool_view.js";
import { useEffect, useState } from "../vendor.js";
import { IconButton, Text, copyText, html } from "./ui.js";

export function TurnView({ conversation, turn, onEdit, onWhy }) {
  // Reading the signal is what draws this turn, and no other, when it changes. Turns are changed in place, and a component
  // whose properties are the same is not drawn again: so the version is a property of all that is drawn from the turn.
  const version = conversation.version(turn.id).value;
  const { messages } = conversation.log;
  const edit = (message) => onEdit(turn, message);
  return html`<article class=${`turn ${turn.state}`} aria-label=${`Turn ${turn.number}`} data-turn=${turn.id}>
    <h2 class="unseen">Turn ${turn.number}</h2>
    ${turn.messages.map(
      (id) =>
        html`<${MessageView} key=${id} message=${messages.get(id)} version=${version} onEdit=${edit} onWhy=${onWhy} />`,
    )}
    <div class="answer">
      ${turn
        .pieces()
        .map(({ key, text, mark, isLast }) =>
          mark
            ? html`<${MarkView} key=${key} mark=${mark} version=${version} turn=${turn.id} messages=${messages} onWhy=${onWhy} />`
            : html`<${Piece} key=${key} text=${text} conversation=${conversation} turn=${turn} version=${version} isLast=${isLast} />`,
        )}
      ${
        turn.lost &&
        html`<p class="lost">⟳ attempt ${turn.attempt} was lost: <${Text} of=${oneLine(turn.lost)} />; it goes on from here</p>`
      }
      ${turn.stuck && html`<p class="lost">■ it <${Text} of=${oneLine(turn.stuck)} /></p>`}
      ${
        turn.isOpen
          ? turn.state !== "asking" && html`<${Life} turn=${turn} conversation=${conversation} version=${version} />`
          : html`<${Ending} turn=${turn}
          version=${version} onWhy=${onWhy} />`
      }
    </div>
  </article>`;
}

/** A piece of text. The last one of an open turn is written on as it grows, and nothing is drawn again for it. */
function Piece({ text, conversation, turn, isLast }) {
  const growing = () => {
    conversation.tailVersion(turn.id).value;
    return turn.tail;
  };
  return html`<${MarkdownView} text=${text} isWhole=${!turn.isOpen} growing=${isLast && turn.isOpen ? growing : null} />`;
}

function MarkView({ mark, version, turn, messages, onWhy }) {
  if (mark.kind === "tool") return html`<${ToolView} tool=${mark} version=${version} turn=${turn} />`;
  if (mark.kind === "question") return html`<${QuestionView} question=${mark} version=${version} />`;
  return html`<${MessageView} message=${messages.get(mark.message)} version=${version} onWhy=${onWhy} />`;
}

/** One line that says what the running turn does, with its age. */
function Life({ turn, conversation }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const seconds = turn.openedAt ? Math.max(0, Math.floor(now / 1000 - turn.openedAt)) : 0;
  return html`<p class="life">
    <span class="pulse" aria-hidden="true"></span>
    <span>${age(seconds)} · <${Text} of=${doing(turn, conversation)} /></span>
    ${isOnline.value && may("talk") && html`<span class="life-hint">Esc interrupts</span>`}
  </p>`;
}

function doing(turn, conversation) {
  if (!isOnline.value) return "goes on when the supervisor is back";
  if (conversation.interrupting.value === turn.id) return "interrupting";
  if (turn.state === "queued") return "accepted, waits for a worker";
  const tools = turn.runningTools;
  if (tools.length > 1) return `${tools.length} tools are running`;
  if (turn.note) return oneLine(turn.note).slice(0, 200);
  return tools.length ? `${oneLine(tools[0].name)} is running` : "answering";
}

function Ending({ turn, onWhy }) {
  const why = html`<${IconButton} icon="why" label="Why: the history of this turn" onClick=${() => onWhy(turn.id)} />`;
  const copy = html`<${IconButton} icon="copy" label="Copy the answer" onClick=${() => copyText(turn.text)} />`;
  const retry =
    may("talk") && html`<button type="button" class="quiet" onClick=${() => retryTurn(turn.id)}>Retry</button>`;
  if (turn.state === "done") {
    const remark = finish(turn.ending);
    return html`${remark && html`<p class="remark">! ${remark}</p>`}
      <p class="ending"><span>${spent(turn)}</span><span class="ending-tools">${copy}${why}</span></p>`;
  }
  if (turn.state === "interrupted") {
    return html`<p class="ending cut">
      <span><span aria-hidden="true">■ </span>cut off ${clock(turn.endedAt)} · ${proof(turn.ending)}</span>
      <span class="ending-tools">${retry}${why}</span>
    </p>`;
  }
  return html`<div class="ending fault">
    <div>
      <p><span aria-hidden="true">✘ </span>failed ${clock(turn.endedAt)} · <${Text} of=${oneLine(turn.ending.error ?? "")} /></p>
      ${turn.ending.hint && html`<p class="dim small">hint: <${Text} of=${oneLine(turn.ending.hint)} /></p>`}
    </div>
    <span class="ending-tools">${retry}${why}</span>
  </div>`;
}

/** A turn that a branch has from the session it began with. */
export function PastTurnView({ row }) {
  return html`<article class="turn past" aria-label="Earlier turn">
    ${row.messages.map(
      (message, index) =>
        html`<div class="you" key=${index}><div class="bubble"><${Said} text=${message.text} /></div></div>`,
    )}
    <div class="answer">
      ${(row.tools ?? []).map((tool) => html`<${ToolView} key=${`${tool.attempt} ${tool.call}`} tool=${pastTool(tool)} turn="" />`)}
      <${MarkdownView} text=${row.text} isWhole=${true} />
    </div>
  </article>`;
}

const pastTool = (tool) => ({
  ...tool,
  summary: tool.arguments,
  state: tool.ok ? "ok" : "failed",
  ms: 0,
  ended: "",
  note: "",
});
