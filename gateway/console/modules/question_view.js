// A question of an agent in its place, with its choices as buttons; the answer may also be typed below.

import { answer } from "./actions.js";
import { may } from "./store.js";
import { useState } from "../vendor.js";
import { Text, html } from "./ui.js";

export function QuestionView({ question }) {
  return html`<div class=${`question ${question.state}`} role="group" aria-label="Question">
    <${QuestionText} question=${question} />
    ${question.state === "open" && may("talk") && html`<${Choices} question=${question} />`}
    ${
      question.state === "answered" &&
      html`<p class="question-answer"><span aria-hidden="true">❯ </span><${Text} of=${question.answer} />
          ${" "}<span class="dim small">by ${question.by}</span></p>`
    }
    ${question.state === "withdrawn" && html`<p class="dim small">withdrawn with its turn</p>`}
  </div>`;
}

/** The first line of an approval asks; the others are what would be done, to the letter. */
export function QuestionText({ question }) {
  const [asks, ...done] = isApproval(question) ? question.text.split("\n") : [question.text];
  return html`<${Text} tag="div" class="question-text" of=${asks} />
    ${done.length > 0 && html`<${Text} tag="pre" class="question-call" of=${done.join("\n")} />`}`;
}

/** Of a question in the log, or of a row of the table of questions. */
export function Choices({ question }) {
  const [isSent, setSent] = useState(false);
  const choices = question.choices?.length ? question.choices : isApproval(question) ? ["yes", "no"] : [];
  const choose = async (choice) => {
    setSent(true);
    if (!(await answer(question, choice))) setSent(false);
  };
  return html`<div class="choices">
    ${choices.map(
      (choice) => html`<button
        key=${choice}
        type="button"
        class=${isApproval(question) && choice === "no" ? "choice deny" : "choice"}
        disabled=${isSent}
        onClick=${() => choose(choice)}
      >
        <${Text} of=${LABELS[choice] && isApproval(question) ? LABELS[choice] : choice} />
      </button>`,
    )}
    ${!isApproval(question) && html`<span class="dim small">or answer in your own words</span>`}
  </div>`;
}

const isApproval = (question) => (question.asks ?? question.kind) === "approve";
const LABELS = { yes: "Approve", no: "Deny", always: "Always in this turn" };
