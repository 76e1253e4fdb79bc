// Events in words, the same words as those of hermesctl (hermesctl/event_format.py and story.py).

import { oneLine } from "./shown_text.js";

/** How a turn was ended, from turn.interrupted or the answer to an interrupt. */
export function proof({ killed }) {
  const { processes = 0, all_dead: allDead = true, ms = "?", how = "?", cancel } = killed ?? {};
  if (!processes) {
    return allDead ? "nothing of it was running" : "what an earlier life left of it is still there";
  }
  // Only the kernel can guarantee that none is left; other cells end the processes they find.
  const left = allDead ? (how === "pidns" ? "none left" : "none found") : "some may be left";
  const noun = processes === 1 ? "process" : "processes";
  return `${processes} ${noun} ended in ${ms} ms, ${left} (${how}${cancel ? `, cancel ${cancel}` : ""})`;
}

/** What a kill could not end, from attempt.stuck. */
export function stuckWords({ processes = 0, words = "" }) {
  const noun = processes === 1 ? "1 process is" : `${processes} processes are`;
  const known = processes ? `was killed, but ${noun} still there: ${words}` : `has ended, but ${words}`;
  return `${known}; its session is held until then`;
}

/** How a command ended, from tool.finished; empty for success, or without a command. */
export function commandEnd({ signal, exit }) {
  if (signal) return oneLine(signal);
  return exit ? `exit ${exit}` : "";
}

const FINISHES = {
  length: "cut off: the model's limit of length was reached",
  content_filter: "cut off by the server's content filter",
  refusal: "the model declined to answer",
  empty: "the model gave an empty answer",
};

/** Why an answer is incomplete, from turn.done; empty when it is complete. */
export function finish({ finish: reason }) {
  const word = oneLine(reason || "stop");
  return word === "stop" ? "" : (FINISHES[word] ?? `the model ended it: ${word}`);
}

/** A tool's arguments without JSON syntax: a single value alone, else each by name. */
export function argumentsInShort(summary) {
  const text = String(summary ?? "");
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    // Long ones are cut off; a person recognises the beginning.
    return oneLine(text.replace(/^\{"\w+": "/, ""));
  }
  if (found === null || typeof found !== "object" || Array.isArray(found)) return oneLine(text);
  const entries = Object.entries(found).map(([name, value]) => [name, asText(value)]);
  if (entries.length === 1) return oneLine(entries[0][1]);
  return entries.map(([name, value]) => `${oneLine(name)}: ${oneLine(value)}`).join(", ");
}

/** Arguments one by one, for the unfolded call: [name, text] each. */
export function argumentList(text) {
  try {
    const found = JSON.parse(text);
    if (found && typeof found === "object" && !Array.isArray(found)) {
      return Object.entries(found).map(([name, value]) => [name, asText(value)]);
    }
  } catch {
    // Shown as it is.
  }
  return text ? [["", text]] : [];
}

function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** 12,345. The browser's own way loads its tables of languages first, which takes longer than to draw a turn. */
export function grouped(number) {
  if (number === null) return "–";
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function counted(number, noun) {
  return number === 1 ? `1 ${noun}` : `${number} ${noun}s`;
}

/** Seconds as a person reads them: 45s, 3m 20s, 2h 5m, 4d 1h. */
export function age(seconds) {
  if (typeof seconds !== "number") return "–";
  const whole = Math.floor(seconds);
  if (whole < 60) return seconds < 10 && seconds !== whole ? `${seconds.toFixed(1)}s` : `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
  return `${Math.floor(whole / 86400)}d ${Math.floor((whole % 86400) / 3600)}h`;
}

/** Bytes as a person reads them: 43 MiB. */
export function size(bytes) {
  if (typeof bytes !== "number") return "–";
  let amount = bytes;
  for (const unit of ["B", "KiB", "MiB"]) {
    if (amount < 1000)
      return amount >= 10 || unit === "B" ? `${amount.toFixed(0)} ${unit}` : `${amount.toFixed(1)} ${unit}`;
    amount /= 1024;
  }
  return `${amount.toFixed(1)} GiB`;
}

/** 14:02 of a moment in seconds since 1970. */
export function clock(at) {
  const time = new Date(at * 1000);
  return `${twoDigits(time.getHours())}:${twoDigits(time.getMinutes())}`;
}

/** 14:02:31.250 */
export function clockWithMilliseconds(at) {
  const time = new Date(Math.round(at * 1000));
  return `${clock(at)}:${twoDigits(time.getSeconds())}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}

const twoDigits = (number) => String(number).padStart(2, "0");

/** The answer that a click or a typed line means: yes, no and always by a letter, a choice by its number. */
export function meantBy(typed, kind, choices) {
  const words = typed.trim();
  if (choices.includes(words)) return words;
  if (/^\d+$/.test(words) && Number(words) >= 1 && Number(words) <= choices.length) return choices[Number(words) - 1];
  if (kind !== "approve") return words;
  const letters = { y: "yes", n: "no", ...(choices.includes("always") ? { a: "always" } : {}) };
  return letters[words.toLowerCase()] ?? words;
}

/** The one line at the end of a turn that was answered: time, duration, tokens, lost attempts. */
export function spent(turn) {
  const tokens = turn.ending.usage?.output_tokens;
  return [
    clock(turn.endedAt),
    turn.openedAt ? age(Math.max(0, turn.endedAt - turn.openedAt)) : "",
    tokens ? counted(tokens, "token") : "",
    turn.losses ? `${counted(turn.losses, "attempt")} lost` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}
