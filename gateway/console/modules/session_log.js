// Builds from a session's events the log that a person reads. No screen, no network, no clock.
//
// `items` are turns, and messages that ended without one, in reading order. Every durable event counts once, by its seq. The
// rules are those of hermesctl/chat/session_log.py.

import { stuckWords } from "./event_words.js";
import { Turn } from "./turn.js";

/** Called with a turn when it has changed, or only its last text (then with true), with null when the list itself has. */
const ignored = () => {};

export class SessionLog {
  constructor(touched = ignored) {
    this.touched = touched;
    this.items = [];
    this.messages = new Map();
    this.turns = new Map();
    this.firstSeq = 0;
    this.seq = 0;
    this.isHeld = false;
    // The busy mode of the last message.
    this.busy = "";
    // Where the session has its beginning from: {from, through, turns}, or null.
    this.begun = null;
  }

  /** The turn that has not ended: a session has at most one. */
  get openTurn() {
    const last = this.lastTurn;
    return last?.isOpen ? last : null;
  }

  get lastTurn() {
    return this.items.findLast((item) => item instanceof Turn) ?? null;
  }

  get question() {
    return this.openTurn?.question ?? null;
  }

  /** Waiting messages, in order of arrival. */
  get waiting() {
    return [...this.messages.values()].filter((each) => each.state === "waiting" || each.state === "transcribing");
  }

  /** Takes an event, a delta or a note. False for an event that was taken before. */
  take(item) {
    if (item.type === "delta") {
      const turn = this._turn(item.turn, 0);
      this.touched(turn, !turn.append(item.attempt, item.offset, item.text));
    } else if (item.type === "note") {
      this._takeNote(item);
    } else {
      return this._takeEvent(item);
    }
    return true;
  }

  /** Takes over messages that have waited since before the first known event. */
  takeQueue(rows) {
    const early = new Map();
    for (const row of rows) {
      this.isHeld ||= Boolean(row.held);
      if (this.messages.has(row.message)) continue;
      const message = newMessage(row.message, row.at ?? 0, row);
      message.state = row.state === "transcribing" ? "transcribing" : "waiting";
      early.set(row.message, message);
    }
    if (early.size) {
      this.messages = new Map([...early, ...this.messages]);
      this.touched(null);
    }
  }

  /** Drops items that ended before this seq; they are in the journal. */
  forgetBefore(seq) {
    let count = 0;
    while (count < this.items.length - 1 && this.items[count].lastSeq < seq) {
      const item = this.items[count++];
      const names = item instanceof Turn ? item.messages : [item.id];
      this.turns.delete(item.id);
      for (const name of names) this.messages.delete(name);
    }
    this.items.splice(0, count);
    this.firstSeq = Math.max(this.firstSeq, seq);
    if (count) this.touched(null);
  }

  _takeEvent(event) {
    if (event.seq <= this.seq) return false;
    this.seq = event.seq;
    this.firstSeq ||= event.seq;
    FOLDS[event.type]?.(this, event);
    const turn = this.turns.get(event.turn);
    if (turn) {
      turn.lastSeq = event.seq;
      this.touched(turn);
    }
    return true;
  }

  _takeNote({ turn, text, call }) {
    if (this.turns.has(turn)) {
      this.turns.get(turn).remark(text, call);
      this.touched(this.turns.get(turn));
    } else if (this.messages.has(turn)) {
      this.messages.get(turn).note = text;
      this.touched(null);
    }
  }

  /** A turn by its id; one that was opened before the first known event begins in the middle. */
  _turn(id, at) {
    let turn = this.turns.get(id);
    if (!turn) {
      turn = new Turn(id, at);
      this.turns.set(id, turn);
      this.items.push(turn);
      this.touched(null);
    }
    return turn;
  }

  _of(event) {
    return this._turn(event.turn, event.at);
  }

  _message(event) {
    if (!this.messages.has(event.message)) this.messages.set(event.message, newMessage(event.message, event.at, {}));
    return this.messages.get(event.message);
  }

  _accept(event) {
    const message = newMessage(event.message, event.at, event);
    message.state = event.kind === "voice" ? "transcribing" : "waiting";
    this.messages.set(event.message, message);
    this.busy = message.busy || this.busy;
    this.touched(null);
  }

  _understand(event) {
    const message = this._message(event);
    message.state = "waiting";
    message.text = event.echo === false ? "" : String(event.text ?? "");
    this.touched(null);
  }

  _misunderstand(event) {
    const message = this._message(event);
    Object.assign(message, {
      state: "not understood",
      reason: String(event.reason),
      hint: String(event.hint ?? ""),
    });
    this._putAside(message, event.seq);
  }

  _drop(event) {
    const message = this._message(event);
    Object.assign(message, { state: "dropped", by: String(event.by ?? "") });
    this._putAside(message, event.seq);
  }

  /** Puts a message without a turn before the open turn, whose text stays at the end. */
  _putAside(message, seq) {
    message.lastSeq = seq;
    const isOpen = this.items.length > 0 && this.items.at(-1) === this.openTurn;
    this.items.splice(this.items.length - Number(isOpen), 0, message);
    this.touched(null);
  }

  _open(event) {
    const turn = this._of(event);
    turn.agent = String(event.agent ?? turn.agent);
    for (const name of event.messages ?? []) {
      turn.messages.push(name);
      this._message({ message: name, at: event.at }).state = "taken";
    }
    this.touched(null);
  }

  _steer(event) {
    this._message(event).state = "taken";
    this._of(event).steer(event.message);
    this.touched(null);
  }

  _answer(event) {
    if (event.message) this._message(event).state = "taken";
    this._of(event).answer(event);
    this.touched(null);
  }

  _hold(isHeld) {
    this.isHeld = isHeld;
    this.touched(null);
  }
}

function newMessage(id, at, { text, kind, busy, by }) {
  return {
    id,
    at,
    text: String(text ?? ""),
    kind: kind || "text",
    busy: String(busy ?? ""),
    // transcribing, waiting, taken, dropped, not understood
    state: "waiting",
    by: String(by ?? ""),
    reason: "",
    hint: "",
    note: "",
    lastSeq: 0,
  };
}

const end = (state) => (log, event) => {
  log._of(event).end(state, event);
  log.touched(null);
};

const FOLDS = {
  "session.begun": (log, event) => {
    log.begun = { from: event.from ?? "", through: event.through ?? 0, turns: event.turns ?? 0 };
    log.touched(null);
  },
  "message.accepted": (log, event) => log._accept(event),
  "transcript.ready": (log, event) => log._understand(event),
  "transcript.failed": (log, event) => log._misunderstand(event),
  "message.dropped": (log, event) => log._drop(event),
  "session.held": (log) => log._hold(true),
  "session.released": (log) => log._hold(false),
  "turn.opened": (log, event) => log._open(event),
  "turn.joined": (log, event) => log._open(event),
  "attempt.opened": (log, event) => log._of(event).beginAttempt(Number(event.attempt ?? 1)),
  "attempt.stuck": (log, event) => {
    log._of(event).stuck = stuckWords(event);
  },
  "attempt.lost": (log, event) => log._of(event).lose(String(event.reason ?? ""), event.offset),
  "tool.started": (log, event) => log._of(event).startTool(event),
  "tool.finished": (log, event) => log._of(event).finishTool(event),
  "question.asked": (log, event) => {
    log._of(event).ask(event);
    log.touched(null);
  },
  "question.answered": (log, event) => log._answer(event),
  "turn.steered": (log, event) => log._steer(event),
  "turn.done": end("done"),
  "turn.failed": end("failed"),
  "turn.interrupted": end("interrupted"),
  "journal.repaired": (log, event) => {
    log.items.push({ id: `gap ${event.seq}`, gap: Number(event.lost ?? 0), lastSeq: event.seq });
    log.touched(null);
  },
};
