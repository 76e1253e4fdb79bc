// One turn as the console shows it: text, tools and questions in their order. No screen, no network.
//
// All attempts together give one text: each continues where the one before it stopped. Each mark (a tool, a question, a
// message that steered) has the length of the text when it happened. The rules are those of hermesctl/chat/turn.py.

import { countPoints, indexOfPoint } from "./code_points.js";
import { commandEnd } from "./event_words.js";

const ENDED = new Set(["done", "failed", "interrupted"]);

/** Whether a text has nothing but white space from there on; it is looked at until the first word only. */
function isBlank(text, begin) {
  for (let at = begin; at < text.length; at += 1) if (text[at].trim()) return false;
  return true;
}

export class Turn {
  constructor(id, openedAt = 0) {
    this.id = id;
    this.openedAt = openedAt;
    this.messages = [];
    this.agent = "";
    // queued, running, asking, done, failed, interrupted
    this.state = "queued";
    this.text = "";
    this.marks = [];
    // The number of the latest attempt; how many were lost; why the latest was, until another one begins.
    this.attempt = 0;
    this.losses = 0;
    this.lost = "";
    this.stuck = "";
    this.endedAt = 0;
    // The event that ended it.
    this.ending = {};
    this.note = "";
    // The number of times that text was taken back: a drawing that only appends must begin again.
    this.rewrites = 0;
    this.lastSeq = 0;
    this._points = 0;
  }

  get number() {
    return Number(this.id.slice(this.id.lastIndexOf("/") + 1));
  }

  get isOpen() {
    return !ENDED.has(this.state);
  }

  /** The question that waits for an answer. */
  get question() {
    return this._marks("question").find((each) => each.state === "open") ?? null;
  }

  /** Running calls, the newest first: calls of one reply run side by side. */
  get runningTools() {
    return this._marks("tool").filter((each) => each.state === "running");
  }

  /** Text and marks in the order in which they happened, as {text} or {mark}; `key` stays the same while text grows. */
  pieces() {
    const found = [];
    let begin = 0;
    const addText = (end) => {
      const text = this.text.slice(begin, end);
      if (text.trim()) found.push({ key: `text ${this.rewrites} ${begin}`, text });
    };
    for (const [at, mark] of this.marks) {
      addText(at);
      found.push({ key: mark.key, mark });
      begin = Math.max(begin, at);
    }
    addText(this.text.length);
    if (found.at(-1)?.text !== undefined) found.at(-1).isLast = true;
    return found;
  }

  beginAttempt(number) {
    this.attempt = number;
    this.lost = this.stuck = this.note = "";
    this.state = "running";
  }

  /**
   * Appends streamed text; drops repetitions, and after a gap all pieces but the one that closes it. Returns whether anything
   * has changed but the length of the last piece, which is what happens hundreds of times a second.
   */
  append(attempt, offset, text) {
    if (!this.isOpen) return false;
    const isBegun = attempt > this.attempt;
    if (isBegun) this.beginAttempt(attempt);
    const isNoted = this.note !== "";
    this.note = "";
    if (offset > this._points) return isBegun || isNoted;
    const news = text.slice(indexOfPoint(text, this._points - offset));
    const hadText = this.text.length > this._tailBegin && !isBlank(this.text, this._tailBegin);
    this.text += news;
    this._points += countPoints(news);
    return isBegun || isNoted || !hadText;
  }

  /** Where the last piece of text begins: behind the last mark. */
  get _tailBegin() {
    return this.marks.reduce((most, [at]) => Math.max(most, at), 0);
  }

  /** The text behind the last mark. */
  get tail() {
    return this.text.slice(this._tailBegin);
  }

  /** Stores a transient note; the tool that it belongs to keeps the last one. */
  remark(text, call = "") {
    if (!this.isOpen) return;
    this.note = text;
    for (const tool of this.runningTools) if (tool.call === call) tool.note = text;
  }

  startTool({ call, name, summary, at }) {
    this._mark({
      kind: "tool",
      key: `tool ${this.attempt} ${call}`,
      call: String(call),
      name: String(name),
      summary: String(summary ?? ""),
      attempt: this.attempt,
      // running, ok, failed, cut
      state: "running",
      startedAt: at,
      ms: 0,
      ended: "",
      note: "",
    });
  }

  finishTool(event) {
    const tool = this._marks("tool").find((each) => each.call === event.call && each.state === "running");
    if (!tool) return;
    tool.state = event.ok ? "ok" : "failed";
    tool.ms = Number(event.ms ?? 0);
    tool.ended = commandEnd(event);
    this.note = "";
  }

  /** Replaces the call that asked by its question. */
  ask({ question, kind, text, choices, offset }) {
    const last = this.marks.at(-1)?.[1];
    if (last?.kind === "tool" && last.state === "running") this.marks.pop();
    this._mark({
      kind: "question",
      key: `question ${question}`,
      id: String(question),
      asks: String(kind),
      text: String(text),
      choices: (choices ?? []).map(String),
      // open, answered, withdrawn
      state: "open",
      answer: "",
      by: "",
      // Where it stands in the text, by the record; events of earlier versions do not have it.
      offset: offset ?? null,
    });
    this.state = "asking";
  }

  answer({ question, text, by }) {
    for (const each of this._marks("question")) {
      if (each.id === question) Object.assign(each, { state: "answered", answer: String(text), by: String(by ?? "") });
    }
    this.state = "queued";
  }

  steer(message) {
    this._mark({ kind: "steered", key: `steered ${message}`, message });
  }

  /** Ends the attempt; the next one continues at `offset`. Text beyond it was shown and never recorded. */
  lose(reason, offset) {
    this._cutTools();
    this.losses += 1;
    this.lost = reason || "no reason was given";
    this.state = this.question ? "asking" : "queued";
    if (offset === undefined || offset === null || offset >= this._points) return;
    const end = indexOfPoint(this.text, offset);
    this.text = this.text.slice(0, end);
    this._points = offset;
    this.marks = this.marks.map(([at, mark]) => [Math.min(at, end), mark]);
    this.rewrites += 1;
  }

  end(state, event) {
    const whole = state === "done" ? event.text : event.partial;
    if (typeof whole === "string" && (whole || state === "done")) this._settle(whole);
    this._cutTools();
    const question = this.question;
    if (question) question.state = "withdrawn";
    Object.assign(this, { state, endedAt: event.at, ending: event, lost: "", stuck: "", note: "" });
  }

  /** Replaces the text by the recorded one; marks of another text lose their positions, but for questions. */
  _settle(whole) {
    const isSame = whole.startsWith(this.text);
    if (!isSame) this.rewrites += 1;
    this.marks = this.marks.map(([at, mark]) => {
      if (typeof mark.offset === "number") return [indexOfPoint(whole, mark.offset), mark];
      return [isSame ? at : 0, mark];
    });
    this.text = whole;
    this._points = countPoints(whole);
  }

  _mark(mark) {
    this.marks.push([this.text.length, mark]);
  }

  /** The newest first. */
  _marks(kind) {
    return this.marks
      .map(([, mark]) => mark)
      .filter((mark) => mark.kind === kind)
      .reverse();
  }

  _cutTools() {
    for (const tool of this.runningTools) tool.state = "cut";
  }
}
