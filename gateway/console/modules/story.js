// The history of a message or a turn as sentences with times, in the words of `hermesctl why`. No screen.

import {
  argumentsInShort,
  clockWithMilliseconds,
  commandEnd,
  counted,
  finish,
  proof,
  stuckWords,
} from "./event_words.js";
import { cut, oneLine } from "./shown_text.js";

const TEXT_MAX = 160;

/** The first row is the current state; the others are the events, in order. Returns {at, words} each; the last has no time. */
export function sentences([summary, ...events]) {
  const told = events.map((event) => ({
    at: clockWithMilliseconds(event.at),
    words: oneLine((SENTENCES[event.type] ?? anything)(event)),
  }));
  return [...told, { at: "", words: oneLine(ending(summary)) }];
}

function ending(summary) {
  const waits = summary.waits ? `: ${summary.waits}` : "";
  if (summary.kind === "turn") {
    const tries = summary.attempts > 1 ? ` after ${summary.attempts} attempts` : "";
    return `turn ${summary.id} is ${summary.state}${tries}${waits}`;
  }
  if (summary.turn)
    return `message ${summary.id} was taken by turn ${summary.turn}, which is ${summary.turn_state}${waits}`;
  return `message ${summary.id} is ${summary.state}${waits}`;
}

const said = (text) => (text ? `: ${cut(oneLine(text), TEXT_MAX)}` : "");

function anything({ type, seq, session, at, ...rest }) {
  const fields = Object.entries(rest).map(([name, value]) => `${name}=${cut(oneLine(JSON.stringify(value)), 40)}`);
  return `${type} ${fields.join(" ")}`;
}

const SENTENCES = {
  "session.begun": (e) => `the session began with ${counted(e.turns, "turn")}${e.from ? ` of ${e.from}` : ""}`,
  "message.accepted": (e) => `message ${e.message} arrived (${e.kind}, ${e.busy})${said(e.text)}`,
  "message.dropped": (e) => `message ${e.message} was dropped by ${e.by}`,
  "transcript.ready": (e) => `message ${e.message} was understood${said(e.text)}`,
  "transcript.failed": (e) => `message ${e.message} could not be understood: ${e.reason}`,
  "turn.opened": (e) =>
    `turn ${e.turn} opened to answer ${e.messages.join(", ")}${e.agent ? ` by agent ${e.agent}` : ""}`,
  "turn.joined": (e) => `before it began, turn ${e.turn} took in ${e.messages.join(", ")} as well`,
  "attempt.opened": (e) =>
    `attempt ${e.attempt} began on worker ${e.worker} (pid ${e.pid}${e.level ? `, sandbox level ${e.level}` : ""})`,
  "attempt.stuck": (e) => `attempt ${e.attempt} ${stuckWords(e)}`,
  "attempt.lost": (e) => `attempt ${e.attempt} was lost: ${e.reason}`,
  "tool.started": (e) => `tool ${e.name} started${said(argumentsInShort(e.summary))}`,
  "tool.finished": (e) => {
    const status = commandEnd(e);
    return `tool ${e.name} ${e.ok ? "finished" : "failed"}${status ? ` (${status})` : ""} after ${e.ms} ms`;
  },
  "question.asked": (e) => `it asked a question (${e.question})${said(e.text)}`,
  "question.answered": (e) => `the question ${e.question} was answered${said(e.text)}`,
  "turn.steered": (e) => `the running agent took in message ${e.message}`,
  "turn.done": (e) => {
    const remark = finish(e);
    const tokens = counted(e.usage?.output_tokens ?? 0, "token");
    return `turn ${e.turn} was answered${e.model ? ` by ${e.model}` : ""} (${tokens}${remark ? `; ${remark}` : ""})${said(e.text)}`;
  },
  "turn.interrupted": (e) => `turn ${e.turn} was interrupted by ${e.by}, ${proof(e)}`,
  "turn.failed": (e) => `turn ${e.turn} failed: ${e.error} (hint: ${e.hint})`,
};
