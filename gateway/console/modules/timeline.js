// The time of a turn in spans: waiting, attempts, and within them tools, questions and words. From its events alone; no screen.

const ENDS = new Set(["turn.done", "turn.failed", "turn.interrupted"]);

/**
 * Returns {begin, end, spans}: each span has lane, kind, label, begin, end in seconds since 1970. What is still open ends
 * `now`. Lanes are waiting, attempts, tools and words, so that what ran at the same time is one below the other.
 */
export function timeline(events, now) {
  const told = events.filter((event) => event.type && event.at);
  if (!told.length) return { begin: now, end: now, spans: [] };
  const begin = told[0].at;
  const ending = told.findLast((event) => ENDS.has(event.type));
  const end = ending?.at ?? Math.max(now, told.at(-1).at);
  const spans = [...waits(told, end), ...attempts(told, end), ...tools(told, end)];
  return { begin, end, spans: [...spans, ...words(spans, end)] };
}

/** From the message, a loss or an answer until an attempt begins; a question waits for a person. */
function waits(events, end) {
  const found = [];
  let since = null;
  let kind = "waiting";
  const close = (at) => {
    if (since !== null && at > since) found.push({ lane: "waiting", kind, label: LABELS[kind], begin: since, end: at });
    since = null;
  };
  for (const { type, at } of events) {
    if (type === "attempt.opened" || ENDS.has(type)) close(at);
    else if (type === "question.asked") {
      close(at);
      [since, kind] = [at, "asking"];
    } else if (since === null && STARTS.has(type)) [since, kind] = [at, "waiting"];
    else if (type === "question.answered") {
      close(at);
      [since, kind] = [at, "waiting"];
    }
  }
  if (since !== null) close(end);
  return found;
}

const STARTS = new Set(["message.accepted", "turn.opened", "attempt.lost"]);
const LABELS = { waiting: "waits for a worker", asking: "waits for an answer" };

function attempts(events, end) {
  const found = [];
  let open = null;
  for (const event of events) {
    if (event.type === "attempt.opened") {
      if (open) open.end = event.at;
      open = {
        lane: "attempts",
        kind: "attempt",
        label: `attempt ${event.attempt}, worker ${event.worker}`,
        begin: event.at,
        end,
      };
      found.push(open);
    } else if (
      open &&
      (event.type === "attempt.lost" || ENDS.has(event.type) || (event.type === "question.asked" && !event.holds))
    ) {
      open.end = event.at;
      if (event.type === "attempt.lost") open.kind = "lost";
      open = null;
    }
  }
  return found;
}

function tools(events, end) {
  const open = new Map();
  const found = [];
  for (const event of events) {
    if (event.type === "tool.started") {
      const span = { lane: "tools", kind: "tool", label: event.name, begin: event.at, end };
      open.set(event.call, span);
      found.push(span);
    } else if (event.type === "tool.finished" && open.has(event.call)) {
      Object.assign(open.get(event.call), { end: event.at, kind: event.ok ? "tool" : "failed" });
      open.delete(event.call);
    } else if (event.type === "attempt.lost" || event.type === "question.asked") {
      for (const span of open.values()) Object.assign(span, { end: event.at, kind: "cut" });
      open.clear();
    }
  }
  return found;
}

/** What is left of the attempts: the model thinks and writes. */
function words(spans, end) {
  const busy = spans.filter((span) => span.lane === "tools").sort((a, b) => a.begin - b.begin);
  const found = [];
  for (const attempt of spans.filter((span) => span.lane === "attempts")) {
    let at = attempt.begin;
    for (const tool of busy) {
      if (tool.begin >= attempt.end || tool.end <= at) continue;
      if (tool.begin > at) found.push(wordSpan(at, tool.begin));
      at = Math.max(at, tool.end);
    }
    if (attempt.end > at) found.push(wordSpan(at, Math.min(attempt.end, end)));
  }
  return found;
}

const wordSpan = (begin, end) => ({ lane: "words", kind: "words", label: "model", begin, end });
