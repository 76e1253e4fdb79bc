// The number of seats: a click counts from what is shown, which is what was asked for until the service tells it.

import assert from "node:assert/strict";
import test from "node:test";

import { SeatCount } from "../../../gateway/console/modules/seat_count.js";

test("a click counts from what was asked for, although the service has told the old number since", () => {
  const count = new SeatCount();
  assert.equal(count.ask(2, 1), 3);
  count.answered(true);
  count.take(2);
  assert.equal(count.shown(2), 3);
  assert.equal(count.ask(2, -1), 2);
});

test("the number of the service is shown once it is what was asked for", () => {
  const count = new SeatCount();
  count.ask(2, 1);
  count.take(3);
  assert.equal(count.shown(2), 3, "while the request is open");
  count.answered(true);
  count.take(3);
  assert.equal(count.shown(5), 5);
});

test("another person's number is shown from the second frame on", () => {
  const count = new SeatCount();
  count.ask(2, 1);
  count.answered(true);
  count.take(8);
  assert.equal(count.shown(8), 3);
  count.take(8);
  assert.equal(count.shown(8), 8);
});

test("two clicks wait for both answers", () => {
  const count = new SeatCount();
  count.ask(2, 1);
  assert.equal(count.ask(2, 1), 4);
  count.answered(true);
  count.take(3);
  count.take(3);
  assert.equal(count.shown(3), 4);
  count.answered(true);
  count.take(3);
  assert.equal(count.shown(3), 4);
});

test("a refused number is not shown, and there is always a seat", () => {
  const count = new SeatCount();
  assert.equal(count.ask(1, -1), 1);
  count.answered(false);
  assert.equal(count.ask(1, 4), 5);
  count.answered(false);
  assert.equal(count.shown(1), 1);
});
