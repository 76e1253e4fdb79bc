// The number of seats as a person sets it. No screen, no request of its own.
//
// A click counts from the number that is shown. The service takes the new number before the page is told: what was asked
// for is shown until then, or the next click would count from the number before it.

// A frame that was on its way when the request was answered has the old number; the one after it was read later.
const FRAMES_MAX = 2;

export class SeatCount {
  constructor() {
    this._asked = null;
    this._frames = 0;
    this._open = 0;
  }

  /** The number to show, beside the one that the service told last. */
  shown(told) {
    return this._asked ?? told;
  }

  /** A person wants another number: returns the one to ask for. */
  ask(told, by) {
    this._asked = Math.max(1, this.shown(told) + by);
    this._open += 1;
    return this._asked;
  }

  /** The service has answered; a number that it refused is not shown any more. */
  answered(isTaken) {
    this._open -= 1;
    this._frames = FRAMES_MAX;
    if (!isTaken && this._open === 0) this._asked = null;
  }

  /** The service tells its number, unasked. */
  take(told) {
    if (this._open > 0 || this._asked === null) return;
    this._frames -= 1;
    if (told === this._asked || this._frames <= 0) this._asked = null;
  }
}
