// One session as this page knows it: its log, where its subscription is, and what the screen has to draw again.
//
// A conversation begins with the recent events. The first subscription only asks where the session is, the second one begins
// some events before that:
//
//     away ── connected ──► locating ── subscribed ──► joining ── subscribed ──► following ── cut, loss ──► away
//                              └─ there is no such session ──► new ── first message accepted ──► joining
//
// Until the second subscription is confirmed nothing is taken: the first one sends what happens now, before what was earlier.
// What changes is gathered and drawn once a frame.

import { ApiError, eventsBefore, get, sessionPath } from "./api.js";
import { SessionLog } from "./session_log.js";
import { Turn } from "./turn.js";
import { batch, signal } from "../vendor.js";

// Events that are read when a session is opened: some dozens of turns. More is read on demand.
const RECENT_EVENTS = 200;
// Events kept so that earlier ones can be put before them. What is read on demand comes on top, up to the last number.
const EVENTS_MAX = 1_500;
const EVENTS_MAX_READ = 10_000;
const AGAIN_MS = 1_000;
// No session has a name with a line break: the version of a text has a key of its own.
const TAIL = "tail\n";
// Turns of a fork that are shown from before it.
const PAST_TURNS = 100;

export class Conversation {
  /** `live` is the connection, `heard(conversation, event)` is called with every new durable event. */
  constructor(session, live, heard) {
    this.session = session;
    this._live = live;
    this._heard = heard;
    // away, locating, joining, following, new
    this.state = signal("away");
    // Changes with the list of items, the queue and what is open; a turn's own changes are in its version.
    this.shape = signal(0);
    this.interrupting = signal("");
    this.isReadingEarlier = signal(false);
    // The turns with which a fork has begun, oldest first.
    this.past = signal([]);
    this._versions = new Map();
    this._dirty = new Set();
    this._isScheduled = false;
    this._events = [];
    this._eventsMax = EVENTS_MAX;
    this._log();
  }

  _log() {
    this.log = new SessionLog((item, isTextOnly) => this._touch(item, isTextOnly));
    return this.log;
  }

  get hasEarlier() {
    return this.log.firstSeq > 1;
  }

  /** A signal that changes whenever this turn does, but for the text at its end. */
  version(id) {
    if (!this._versions.has(id)) this._versions.set(id, signal(0));
    return this._versions.get(id);
  }

  /** A signal that changes when the text at the end of this turn grows. */
  tailVersion(id) {
    return this.version(TAIL + id);
  }

  /** Subscribes where the log ends; called whenever the connection is up. */
  follow() {
    if (this.log.seq) {
      this.state.value = "joining";
      this._live.send({ subscribe: this.session, after: this.log.seq });
      this._readQueue();
    } else {
      this.state.value = "locating";
      this._live.send({ subscribe: this.session });
    }
  }

  /** The session has begun: with this message, or by a fork. */
  begin() {
    if (this.state.value !== "new") return;
    this.state.value = "joining";
    this._live.send({ subscribe: this.session, after: 0 });
  }

  leave() {
    this._live.send({ unsubscribe: this.session });
    this.state.value = "away";
  }

  lost() {
    this.state.value = this.state.value === "new" ? "new" : "away";
    this.interrupting.value = "";
  }

  /** Takes a frame of this session. */
  take(frame) {
    if (frame.type === "subscribed") this._subscribed(frame.seq);
    else if (frame.type === "cut") this._again(0);
    else if (frame.type === "error") this._failed(frame.error);
    else if (frame.type !== "unsubscribed" && this.state.value === "following") this._takeItem(frame);
  }

  /** Reads one page of earlier events, and puts them before those that are shown. */
  async readEarlier() {
    if (this.isReadingEarlier.value || !this.hasEarlier || this._events.length >= EVENTS_MAX_READ) return;
    this.isReadingEarlier.value = true;
    try {
      const events = await eventsBefore(this.session, this.log.firstSeq, RECENT_EVENTS);
      this._putBefore(events);
    } finally {
      this.isReadingEarlier.value = false;
    }
  }

  _subscribed(seq) {
    if (this.state.value === "joining") {
      this.state.value = "following";
    } else if (this.state.value === "locating") {
      this.state.value = "joining";
      this._live.send({ subscribe: this.session, after: Math.max(0, seq - RECENT_EVENTS) });
      this._readQueue();
    }
  }

  _failed({ code }) {
    if (code === "unknown") {
      this.state.value = "new";
      this._touch(null);
    } else if (code === "unavailable" || code === "full") {
      this._again(AGAIN_MS);
    } else {
      // The journal was replaced by an older one: begin again with what there is.
      this._events = [];
      this._log();
      this._touch(null);
      this._again(AGAIN_MS);
    }
  }

  _again(pause) {
    this.state.value = "away";
    setTimeout(() => this._live.isUp && this.state.value === "away" && this.follow(), pause);
  }

  _takeItem(item) {
    if (!this.log.take(item) || !item.seq) return;
    this._events.push(item);
    if (this._events.length > this._eventsMax) {
      // By some at once: to forget costs a look at all items.
      this._events.splice(0, 100);
      this.log.forgetBefore(this._events[0].seq);
      for (const id of this._versions.keys()) if (!this.log.turns.has(id.replace(TAIL, ""))) this._versions.delete(id);
    }
    if (item.turn === this.interrupting.value && !this.log.turns.get(item.turn)?.isOpen) this.interrupting.value = "";
    if (item.type === "session.begun") this._readPast();
    this._heard(this, item);
  }

  /** Builds the log again with earlier events in front; keeps of an open turn what was no event. */
  _putBefore(events) {
    const known = this.log;
    const earlier = events.filter((event) => event.seq < known.firstSeq);
    this._events = [...earlier, ...this._events];
    this._eventsMax = Math.min(EVENTS_MAX_READ, Math.max(this._eventsMax, this._events.length + EVENTS_MAX));
    const log = this._log();
    for (const event of this._events) log.take(event);
    for (const [id, message] of known.messages) if (!log.messages.has(id)) log.messages.set(id, message);
    const open = known.openTurn;
    const turn = open && log.turns.get(open.id);
    if (turn) turn.append(turn.attempt, 0, open.text);
    // The journal has pruned the rest: this is the beginning now.
    if (!earlier.length) log.firstSeq = 1;
    for (const item of log.items) if (item instanceof Turn) this._dirty.add(item.id);
    this._touch(null);
  }

  /** What the events may not have reported: messages that wait for longer than the log goes back. */
  async _readQueue() {
    try {
      const { messages } = await get(`${sessionPath(this.session)}/queue`);
      this.log.takeQueue(messages);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }

  /** The turns that a fork has begun with are no events of its own. */
  async _readPast() {
    try {
      const found = await get(`${sessionPath(this.session)}/history?before=1&limit=${PAST_TURNS}`);
      this.past.value = found.turns.filter((row) => row.state === "past").reverse();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }

  _touch(item, isTextOnly = false) {
    this._dirty.add(item instanceof Turn ? (isTextOnly ? TAIL : "") + item.id : null);
    if (this._isScheduled) return;
    this._isScheduled = true;
    // Hidden pages are given no frames, and their notices must not wait for one.
    if (document.hidden) setTimeout(() => this._draw(), 50);
    else requestAnimationFrame(() => this._draw());
  }

  _draw() {
    this._isScheduled = false;
    const dirty = this._dirty;
    this._dirty = new Set();
    batch(() => {
      for (const id of dirty) {
        if (id === null) this.shape.value += 1;
        else this.version(id).value += 1;
      }
    });
  }
}
