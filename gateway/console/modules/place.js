// Which screen is shown, in the fragment of the address, so that back and reload work: #/talk/SESSION, #/watch.

import { kept, keep } from "./kept.js";
import { signal } from "../vendor.js";

const FIRST_SESSION = "main";

export const place = signal(read());

/** The pairing code that a QR code brought along. It leaves the address, and so the history, at once. */
export function takeCode() {
  const code = /^#code=([^&]+)/.exec(location.hash)?.[1];
  if (!code) return "";
  history.replaceState(null, "", location.pathname);
  place.value = read();
  return decodeURIComponent(code);
}

export function go(view, session = "") {
  location.hash = view === "talk" ? `#/talk/${encodeURIComponent(session)}` : `#/${view}`;
}

function read() {
  const [, view, rest] = /^#\/(\w+)(?:\/(.*))?$/.exec(location.hash) ?? [];
  if (view === "watch") return { view: "watch", session: kept("session", FIRST_SESSION) };
  const session = view === "talk" && rest ? decoded(rest) : kept("session", FIRST_SESSION);
  return { view: "talk", session };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return FIRST_SESSION;
  }
}

addEventListener("hashchange", () => {
  place.value = read();
  if (place.value.view === "talk") keep("session", place.value.session);
});
