// Sentences about events, the same as those of hermesctl, and the spans of a turn's time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { age, argumentsInShort, grouped, meantBy, proof, size } from "../../../gateway/console/modules/event_words.js";
import { linePoints, Samples } from "../../../gateway/console/modules/samples.js";
import { sentences } from "../../../gateway/console/modules/story.js";
import { timeline } from "../../../gateway/console/modules/timeline.js";

test("the proof says what ended and what is left", () => {
  const killed = { processes: 4, all_dead: true, ms: 9, how: "pidns" };
  assert.equal(proof({ killed }), "4 processes ended in 9 ms, none left (pidns)");
  assert.equal(
    proof({ killed: { ...killed, processes: 1, how: "sweep" } }),
    "1 process ended in 9 ms, none found (sweep)",
  );
  assert.equal(
    proof({ killed: { ...killed, all_dead: false } }),
    "4 processes ended in 9 ms, some may be left (pidns)",
  );
  assert.equal(proof({}), "nothing of it was running");
});

test("arguments are read without JSON", () => {
  assert.equal(argumentsInShort('{"command": "ls -la"}'), "ls -la");
  assert.equal(argumentsInShort('{"path": "a", "text": "b"}'), "path: a, text: b");
  assert.equal(argumentsInShort('{"command": "a very long one that is cu'), "a very long one that is cu");
});

test("a typed line may mean a choice", () => {
  assert.equal(meantBy("2", "clarify", ["red", "blue"]), "blue");
  assert.equal(meantBy("y", "approve", ["yes", "no"]), "yes");
  assert.equal(meantBy("a", "approve", ["yes", "no"]), "a");
  assert.equal(meantBy("a", "approve", ["yes", "no", "always"]), "always");
  assert.equal(meantBy(" green ", "clarify", []), "green");
});

test("ages and sizes are for people", () => {
  assert.deepEqual([1.44, 45, 200, 7500, 350_000].map(age), ["1.4s", "45s", "3m 20s", "2h 5m", "4d 1h"]);
  assert.deepEqual([900, 45_000_000, 3e9].map(size), ["900 B", "43 MiB", "2.8 GiB"]);
});

const EVENTS = [
  { type: "message.accepted", at: 0, message: "m1", kind: "text", busy: "queue", text: "hello" },
  { type: "turn.opened", at: 0, turn: "s/1", messages: ["m1"] },
  { type: "attempt.opened", at: 2, turn: "s/1", attempt: 1, worker: 0, pid: 7 },
  { type: "tool.started", at: 3, turn: "s/1", call: "c1", name: "shell", summary: "{}" },
  { type: "tool.finished", at: 5, turn: "s/1", call: "c1", name: "shell", ok: true, ms: 2000 },
  { type: "attempt.lost", at: 6, turn: "s/1", attempt: 1, reason: "killed" },
  { type: "attempt.opened", at: 8, turn: "s/1", attempt: 2, worker: 1, pid: 8 },
  { type: "question.asked", at: 9, turn: "s/1", question: "s/1#1", text: "?" },
  { type: "question.answered", at: 12, turn: "s/1", question: "s/1#1", text: "!" },
  { type: "attempt.opened", at: 13, turn: "s/1", attempt: 3, worker: 1, pid: 8 },
  { type: "turn.done", at: 16, turn: "s/1", text: "x", usage: { output_tokens: 1 } },
].map((event, index) => ({ seq: index + 1, ...event }));

test("the time of a turn is waiting, attempts, tools and words", () => {
  EVENTS.forEach((event) => (event.at += 1000));
  const { begin, end, spans } = timeline(EVENTS, 9999);
  assert.deepEqual([begin, end], [1000, 1016]);
  const lane = (name) =>
    spans.filter((span) => span.lane === name).map((span) => [span.kind, span.begin - 1000, span.end - 1000]);
  assert.deepEqual(lane("waiting"), [
    ["waiting", 0, 2],
    ["waiting", 6, 8],
    ["asking", 9, 12],
    ["waiting", 12, 13],
  ]);
  assert.deepEqual(lane("attempts"), [
    ["lost", 2, 6],
    ["attempt", 8, 9],
    ["attempt", 13, 16],
  ]);
  assert.deepEqual(lane("tools"), [["tool", 3, 5]]);
  assert.deepEqual(lane("words"), [
    ["words", 2, 3],
    ["words", 5, 6],
    ["words", 8, 9],
    ["words", 13, 16],
  ]);
});

test("what is open lasts until now", () => {
  const { end, spans } = timeline(EVENTS.slice(0, 4), 1050);
  assert.equal(end, 1050);
  assert.equal(spans.find((span) => span.lane === "tools").end, 1050);
});

test("every step is a sentence, and an unknown one is told by its fields", () => {
  const rows = [
    { kind: "turn", id: "s/1", state: "done", attempts: 3 },
    ...EVENTS,
    { type: "new.kind", at: 1017, seq: 99, colour: "red" },
  ];
  const told = sentences(rows).map(({ words }) => words);
  assert.equal(told[0], "message m1 arrived (text, queue): hello");
  assert.equal(told[2], "attempt 1 began on worker 0 (pid 7)");
  assert.equal(told.at(-2), 'new.kind colour="red"');
  assert.equal(told.at(-1), "turn s/1 is done after 3 attempts");
});

test("a sparkline ends at the right edge and has a bounded past", () => {
  const samples = new Samples();
  for (let n = 0; n < 500; n += 1)
    samples.take({ busy: n % 3, waiting: 1, queued: 1, turns_ended: n * 2, lag_ms: 0 }, []);
  assert.equal(samples.of("busy").length, 60);
  assert.deepEqual(samples.of("ended").slice(-2), [2, 2]);
  assert.match(linePoints(samples.of("waiting"), 120, 28), /120\.0,1\.0$/);
  samples.take({ turns_ended: null }, []);
  samples.take({ turns_ended: 1001 }, []);
  assert.deepEqual(samples.of("ended").slice(-2), [0, 3], "a journal that could not be read has ended none");
});

test("a long number has its thousands apart", () => {
  assert.deepEqual([0, 999, 1000, 12345.6, 1234567].map(grouped), ["0", "999", "1,000", "12,346", "1,234,567"]);
  assert.equal(grouped(null), "–");
});
