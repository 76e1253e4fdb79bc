// Messages on their way. Each has a key: the same key is one message, however often it is sent, so a message is sent until it
// is answered, also after a reload or by two tabs. Texts are kept by the browser until they are accepted; clips only in memory.

import { ApiError, post, sessionPath } from "./api.js";
import { keep, kept, onKeptElsewhere } from "./kept.js";
import { batch, signal } from "../vendor.js";

const PAUSE_MS = 500;
const PAUSE_MS_MAX = 8_000;
// More than a person types in an outage.
const UNSENT_MAX = 100;

export class Outbox {
  /** `accepted(item, seq)` is called when a message is durable; its item stays until its event was seen. */
  constructor(accepted) {
    this._accepted = accepted;
    // {key, session, text, busy, clip, state: sending | accepted | refused, message, fault, hint}
    this.items = signal(kept("outbox", []));
    this._isPumping = false;
    this._pause = PAUSE_MS;
    onKeptElsewhere((name) => name === "outbox" && this._adopt());
  }

  of(session) {
    return this.items.value.filter((item) => item.session === session);
  }

  get isFull() {
    return this.items.value.length >= UNSENT_MAX;
  }

  add(session, { text = "", clip = null, busy = "" }) {
    const key = `console-${crypto.randomUUID?.() ?? randomHex()}`;
    this._set([
      ...this.items.value,
      { key, session, text, clip, busy, state: "sending", message: "", fault: "", hint: "" },
    ]);
    this.pump();
  }

  remove(key) {
    this._set(this.items.value.filter((item) => item.key !== key));
  }

  again(key) {
    this._update(key, { state: "sending", fault: "", hint: "" });
    this.pump();
  }

  /** Removes the messages whose events have arrived. */
  forgetArrived(session, messages) {
    const left = this.items.value.filter(
      (item) => !(item.session === session && item.message && messages.has(item.message)),
    );
    if (left.length < this.items.value.length) this._set(left);
  }

  /** Sends what is unsent, one after the other, in the order in which it was typed. */
  async pump() {
    if (this._isPumping) return;
    this._isPumping = true;
    clearTimeout(this._timer);
    try {
      for (let item; (item = this.items.value.find((each) => each.state === "sending"));) {
        await this._send(item);
        this._pause = PAUSE_MS;
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // 401 waits for the login, which calls this again.
      if (error.status !== 401) {
        const pause = Math.max(this._pause, error.retrySeconds * 1000);
        this._timer = setTimeout(() => this.pump(), pause);
        this._pause = Math.min(this._pause * 2, PAUSE_MS_MAX);
      }
    } finally {
      this._isPumping = false;
    }
  }

  async _send(item) {
    try {
      const { message, seq } = await post(`${sessionPath(item.session)}/messages`, {
        key: item.key,
        ...body(item),
      });
      this._update(item.key, { state: "accepted", message, clip: null });
      this._accepted({ ...item, message }, seq);
    } catch (error) {
      if (!(error instanceof ApiError) || error.isPassing || error.status === 401) {
        // A full queue of the session is no fault of the line: the person decides.
        if (error.code !== "full" || item.clip) throw error;
      }
      this._update(item.key, { state: "refused", fault: error.message, hint: error.hint });
    }
  }

  _update(key, fields) {
    this._set(this.items.value.map((item) => (item.key === key ? { ...item, ...fields } : item)));
  }

  _set(items) {
    batch(() => (this.items.value = items));
    keep(
      "outbox",
      items.filter((item) => !item.clip && item.state !== "accepted"),
    );
  }

  /** Takes over what another tab has added or sent. */
  _adopt() {
    const theirs = kept("outbox", []);
    const ours = this.items.value.filter((item) => item.clip || item.state === "accepted");
    this.items.value = [...ours, ...theirs.filter((item) => !ours.some((each) => each.key === item.key))];
  }
}

function body({ text, clip, busy }) {
  if (!clip) return { json: { text, ...(busy ? { busy } : {}) } };
  const form = new FormData();
  if (busy) form.append("busy", busy);
  form.append("audio", clip.blob, clip.name);
  return { form };
}

function randomHex() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (each) => each.toString(16).padStart(2, "0")).join("");
}
