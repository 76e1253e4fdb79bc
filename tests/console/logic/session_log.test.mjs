// The log of a session: what events, deltas and notes make of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SessionLog } from "../../../gateway/console/modules/session_log.js";

/** A log that has taken these events; seqs are counted. */
function logOf(...events) {
  const log = new SessionLog();
  events.forEach((event, index) => log.take({ seq: index + 1, at: 100 + index, session: "s", ...event }));
  return log;
}

const ACCEPTED = { type: "message.accepted", message: "m1", kind: "text", busy: "queue", text: "hello" };
const OPENED = { type: "turn.opened", turn: "s/1", messages: ["m1"], agent: "default" };
const ATTEMPT = { type: "attempt.opened", turn: "s/1", attempt: 1 };
const delta = (offset, text, attempt = 1) => ({ type: "delta", session: "s", turn: "s/1", attempt, offset, text });
const shown = (turn) => turn.pieces().map(({ text, mark }) => text ?? mark.kind);

test("a message waits until its turn takes it", () => {
  const log = logOf(ACCEPTED);
  assert.deepEqual(
    log.waiting.map((each) => each.id),
    ["m1"],
  );
  log.take({ seq: 2, at: 101, ...OPENED });
  assert.equal(log.waiting.length, 0);
  assert.equal(log.openTurn.id, "s/1");
  assert.equal(log.busy, "queue");
});

test("an event counts once, whatever is repeated", () => {
  const log = logOf(ACCEPTED, OPENED);
  assert.equal(log.take({ seq: 2, at: 101, ...OPENED }), false);
  assert.deepEqual(log.openTurn.messages, ["m1"]);
});

test("deltas that overlap are joined, and one behind a gap waits for the piece that closes it", () => {
  const log = logOf(ACCEPTED, OPENED, ATTEMPT);
  for (const each of [delta(0, "abc"), delta(2, "cde"), delta(9, "xyz"), delta(0, "abcdefghi"), delta(9, "xyz")])
    log.take(each);
  assert.equal(log.openTurn.text, "abcdefghixyz");
});

test("offsets count characters, not UTF-16 units", () => {
  const log = logOf(ACCEPTED, OPENED, ATTEMPT);
  log.take(delta(0, "a😀b"));
  log.take(delta(3, "c"));
  log.take(delta(1, "😀bcd"));
  assert.equal(log.openTurn.text, "a😀bcd");
  log.take({ seq: 4, at: 104, type: "attempt.lost", turn: "s/1", attempt: 1, reason: "killed", offset: 2 });
  assert.equal(log.openTurn.text, "a😀");
});

test("a lost attempt cuts the text to what was recorded, and the next one continues there", () => {
  const log = logOf(ACCEPTED, OPENED, ATTEMPT);
  log.take(delta(0, "one two three"));
  log.take({ seq: 4, at: 104, type: "tool.started", turn: "s/1", call: "c1", name: "shell", summary: "{}" });
  log.take({ seq: 5, at: 105, type: "attempt.lost", turn: "s/1", attempt: 1, reason: "killed", offset: 7 });
  const turn = log.openTurn;
  assert.deepEqual([turn.text, turn.lost, turn.losses, turn.state], ["one two", "killed", 1, "queued"]);
  assert.equal(turn.pieces().at(-1).mark.state, "cut");
  log.take(delta(7, " four", 2));
  assert.deepEqual([turn.text, turn.lost, turn.attempt], ["one two four", "", 2]);
  assert.deepEqual(shown(turn), ["one two", "tool", " four"]);
});

test("the recorded answer replaces what was streamed", () => {
  const log = logOf(ACCEPTED, OPENED, ATTEMPT);
  log.take(delta(0, "streamed and then lost"));
  log.take({ seq: 4, at: 104, type: "turn.done", turn: "s/1", text: "recorded", usage: {} });
  assert.equal(log.lastTurn.text, "recorded");
  assert.equal(log.openTurn, null);
  log.take(delta(0, "late"));
  assert.equal(log.lastTurn.text, "recorded");
});

test("a question takes the place of the call that asked, and stands where the record says", () => {
  const asked = {
    type: "question.asked",
    turn: "s/1",
    question: "s/1#1",
    kind: "clarify",
    text: "which?",
    choices: ["a"],
    offset: 3,
  };
  const log = logOf(
    ACCEPTED,
    OPENED,
    ATTEMPT,
    { type: "tool.started", turn: "s/1", call: "c", name: "ask", summary: "" },
    asked,
  );
  assert.deepEqual([log.openTurn.state, log.question.id, shown(log.openTurn)], ["asking", "s/1#1", ["question"]]);
  log.take({ seq: 6, at: 106, type: "question.answered", turn: "s/1", question: "s/1#1", text: "a", by: "me" });
  assert.equal(log.question, null);
  log.take({ seq: 7, at: 107, type: "turn.done", turn: "s/1", text: "onetwo", usage: {} });
  assert.deepEqual(shown(log.lastTurn), ["one", "question", "two"]);
});

test("the end of a turn withdraws its question and stops its tools", () => {
  const log = logOf(ACCEPTED, OPENED, ATTEMPT, {
    type: "tool.started",
    turn: "s/1",
    call: "c",
    name: "shell",
    summary: "",
  });
  log.take({
    seq: 5,
    at: 105,
    type: "turn.interrupted",
    turn: "s/1",
    by: "me",
    partial: "half",
    killed: { processes: 2 },
  });
  const [, tool] = log.lastTurn.marks[0];
  assert.deepEqual([log.lastTurn.state, log.lastTurn.text, tool.state], ["interrupted", "half", "cut"]);
});

test("a message without a turn is put before the open turn", () => {
  const log = logOf(
    ACCEPTED,
    OPENED,
    { ...ACCEPTED, message: "m2" },
    { type: "message.dropped", message: "m2", by: "me" },
  );
  assert.deepEqual(
    log.items.map((item) => item.id),
    ["m2", "s/1"],
  );
});

test("a clip is transcribed, and one that is not understood says why", () => {
  const clip = { type: "message.accepted", message: "m1", kind: "voice", busy: "" };
  const log = logOf(
    clip,
    { ...clip, message: "m2" },
    { type: "transcript.ready", message: "m1", text: "hi", echo: true },
  );
  assert.deepEqual([log.messages.get("m1").text, log.messages.get("m2").state], ["hi", "transcribing"]);
  log.take({ seq: 4, at: 104, type: "transcript.failed", message: "m2", reason: "silence", hint: "speak" });
  assert.deepEqual(
    log.items.map((item) => [item.id, item.state]),
    [["m2", "not understood"]],
  );
});

test("messages that waited before the first known event come from the queue", () => {
  const log = logOf(ACCEPTED);
  log.takeQueue([
    { message: "m0", text: "earlier", at: 1, held: true },
    { message: "m1", text: "hello", at: 2, held: true },
  ]);
  assert.deepEqual(
    log.waiting.map((each) => each.id),
    ["m0", "m1"],
  );
  assert.equal(log.isHeld, true);
});

test("what has left the window is forgotten with its messages", () => {
  const done = { type: "turn.done", turn: "s/1", text: "x", usage: {} };
  const log = logOf(
    ACCEPTED,
    OPENED,
    ATTEMPT,
    done,
    { ...ACCEPTED, message: "m2" },
    { ...OPENED, turn: "s/2", messages: ["m2"] },
  );
  log.forgetBefore(5);
  assert.deepEqual([[...log.turns.keys()], [...log.messages.keys()], log.firstSeq], [["s/2"], ["m2"], 5]);
});
