// What the browser keeps for this page: drafts, unsent messages, what was seen, choices. Never a token, never an answer.

const PREFIX = "hermes.";

export function keep(name, value) {
  try {
    if (value === null || value === "") localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // Storage is full or forbidden: the page works, and keeps things until it is closed.
  }
}

export function kept(name, otherwise = null) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Calls when another tab has changed something. */
export function onKeptElsewhere(call) {
  addEventListener("storage", ({ key }) => {
    if (key?.startsWith(PREFIX)) call(key.slice(PREFIX.length));
  });
}

/** At logout: nothing of a person stays behind. */
export function forgetKept() {
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
  } catch {
    // Then there is nothing.
  }
}
