// Requests to the gateway. An answer that is no success is an ApiError: a fault and a remedy, each a sentence.

const AWAY = {
  message: "the gateway does not answer",
  hint: "check that the service runs and that this device is online",
  code: "away",
};

export class ApiError extends Error {
  /** `status` is 0 when there was no answer at all. */
  constructor(status, { message, hint, code }, retrySeconds = 0) {
    super(message);
    this.status = status;
    this.hint = hint ?? "";
    this.code = code ?? "";
    this.retrySeconds = retrySeconds;
  }

  /** Nothing is wrong with the request: the same one may succeed later. */
  get isPassing() {
    return this.status === 0 || this.status === 429 || this.status >= 502;
  }
}

let signedOut = () => {};

/** Calls this once a request finds that the login has ended. */
export function onSignedOut(call) {
  signedOut = call;
}

/** Sends a request; `key` makes its repetitions harmless. Returns what the answer says. */
export async function call(method, path, { json, form, key, signal, isLogin = false } = {}) {
  const headers = {};
  if (json !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  let answer;
  try {
    const body = form ?? (json === undefined ? undefined : JSON.stringify(json));
    answer = await fetch(path, { method, headers, body, signal, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, AWAY);
  }
  if (answer.ok) return answer.status === 204 ? null : readJson(answer);
  const refused = await refusal(answer);
  if (refused.status === 401 && !isLogin) signedOut(refused);
  throw refused;
}

export const get = (path, options) => call("GET", path, options);
export const post = (path, options) => call("POST", path, options);
export const remove = (path, options) => call("DELETE", path, options);

async function readJson(answer) {
  try {
    return await answer.json();
  } catch {
    throw new ApiError(0, AWAY);
  }
}

async function refusal(answer) {
  const retrySeconds = Number(answer.headers.get("Retry-After")) || 0;
  try {
    const { error } = await answer.json();
    return new ApiError(answer.status, error, retrySeconds);
  } catch {
    const hint = "something between this page and the gateway answered; reload the page";
    return new ApiError(answer.status, { message: `the answer was ${answer.status}`, hint }, retrySeconds);
  }
}

export const sessionPath = (session) => `/api/sessions/${encodeURIComponent(session)}`;

/** A turn `demo/3` is two segments of a path. */
export function turnPath(turn) {
  const at = turn.lastIndexOf("/");
  return `/api/turns/${encodeURIComponent(turn.slice(0, at))}/${turn.slice(at + 1)}`;
}

/** Reads events before those that are known: a stream of server-sent events that is ended where the known ones begin. */
export async function eventsBefore(session, before, count) {
  const after = Math.max(0, before - 1 - count);
  const stop = new AbortController();
  const found = [];
  try {
    const answer = await fetch(`${sessionPath(session)}/events?after=${after}`, {
      signal: stop.signal,
      cache: "no-store",
    });
    if (!answer.ok) throw await refusal(answer);
    for await (const event of sentEvents(answer.body)) {
      if (event.seq && event.seq < before) found.push(event);
      if (!event.seq || event.seq >= before - 1) break;
    }
    return found;
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError(0, AWAY);
  } finally {
    stop.abort();
  }
}

async function* sentEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (true) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const line = part.split("\n").find((each) => each.startsWith("data: "));
      if (line) yield JSON.parse(line.slice(6));
    }
  }
}
