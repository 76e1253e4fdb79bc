// The one connection of the page: all sessions, in events with seqs, and the tables that it watches.
//
// After sleep, a restart or a lost network it connects again and subscribes each session after the last seq that the page
// has, so nothing is lost and nothing comes twice. A connection can be dead without a sign: when nothing has come for a while
// it has to answer a question, and after a sleep of the machine it is replaced.

// The pauses between two attempts to connect; the last one is repeated.
const PAUSES_MS = [100, 300, 700, 1500, 3000, 5000];
const TICK_MS = 5_000;
// Nothing came for so long: ask. No answer until the next tick: connect again.
const QUIET_MS = 20_000;
// Between two ticks passed so long: the machine slept.
const SLEPT_MS = 30_000;

export class Live {
  /**
   * `take(frame)` gets every frame. `changed(isUp)` is called when the connection is up, and when it is lost; after a loss
   * `ended(code)` says why.
   */
  constructor({ take, changed, ended, address = liveAddress() }) {
    this._take = take;
    this._changed = changed;
    this._ended = ended;
    this._address = address;
    this._socket = null;
    this._failures = 0;
    this._timer = 0;
    this._heardAt = 0;
    this._tickedAt = Date.now();
    this._isAsked = false;
    this._isClosed = true;
    this.isUp = false;
  }

  open() {
    if (!this._isClosed) return;
    this._isClosed = false;
    this._ticker = setInterval(() => this._tick(), TICK_MS);
    this._now = () => this.reconnect();
    this._seen = () => document.visibilityState === "visible" && !this.isUp && this.reconnect();
    addEventListener("online", this._now);
    document.addEventListener("visibilitychange", this._seen);
    this._connect();
  }

  close() {
    this._isClosed = true;
    clearInterval(this._ticker);
    clearTimeout(this._timer);
    removeEventListener("online", this._now);
    document.removeEventListener("visibilitychange", this._seen);
    this._drop();
  }

  /** False when it is not connected: `changed` is called later, and it can be sent then. */
  send(command) {
    if (!this.isUp) return false;
    this._socket.send(JSON.stringify(command));
    return true;
  }

  /** At once, whatever the state of the connection seems to be. */
  reconnect() {
    if (this._isClosed) return;
    clearTimeout(this._timer);
    this._drop();
    this._connect();
  }

  _connect() {
    const socket = new WebSocket(this._address);
    this._socket = socket;
    socket.onopen = () => {
      if (socket !== this._socket) return;
      this.isUp = true;
      this._failures = 0;
      this._heardAt = Date.now();
      this._isAsked = false;
      this._changed(true);
    };
    socket.onmessage = ({ data }) => {
      if (socket !== this._socket) return;
      this._heardAt = Date.now();
      this._isAsked = false;
      this._take(JSON.parse(data));
    };
    socket.onclose = ({ code }) => {
      if (socket !== this._socket) return;
      this._lost();
      this._ended(code);
      const pause = PAUSES_MS[Math.min(this._failures++, PAUSES_MS.length - 1)];
      if (!this._isClosed) this._timer = setTimeout(() => this._connect(), pause);
    };
  }

  _drop() {
    const socket = this._socket;
    this._socket = null;
    socket?.close();
    this._lost();
  }

  _lost() {
    if (!this.isUp) return;
    this.isUp = false;
    this._changed(false);
  }

  _tick() {
    const now = Date.now();
    const slept = now - this._tickedAt > SLEPT_MS;
    this._tickedAt = now;
    if (!this.isUp) return;
    if (slept || (this._isAsked && now - this._heardAt > QUIET_MS)) {
      this.reconnect();
    } else if (now - this._heardAt > QUIET_MS) {
      this._isAsked = true;
      // Answered by `unsubscribed`, whether there was a subscription or not.
      this.send({ unsubscribe: "?" });
    }
  }
}

function liveAddress() {
  return `${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}/api/live`;
}
