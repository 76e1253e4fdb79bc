// The history of a message or a turn: its time as a picture, then every step as a sentence.

import { whyMessage, whyTurn } from "./actions.js";
import { age } from "./event_words.js";
import { sentences } from "./story.js";
import { attempt } from "./store.js";
import { timeline } from "./timeline.js";
import { useEffect, useState } from "../vendor.js";
import { Dialog, Text, html } from "./ui.js";

const LANES = ["waiting", "attempts", "tools", "words"];

/** `id` is a turn (SESSION/N) or a message (m_…). */
export function WhyView({ id, onClose }) {
  const [rows, setRows] = useState(null);
  useEffect(() => {
    attempt(async () => setRows((await (id.includes("/") ? whyTurn(id) : whyMessage(id))).rows)).then((found) => found);
  }, [id]);
  return html`<${Dialog} title=${`Why: ${id}`} class="why" onClose=${onClose}>
    ${
      rows
        ? html`<${Timeline} events=${rows.slice(1)} />
          <ol class="story">
            ${sentences(rows).map(
              ({ at, words }, index) => html`<li key=${index}><time>${at}</time><${Text} of=${words} /></li>`,
            )}
          </ol>`
        : html`<p class="dim">reading …</p>`
    }
  <//>`;
}

export function Timeline({ events }) {
  const { begin, end, spans } = timeline(events, Date.now() / 1000);
  const whole = Math.max(end - begin, 0.001);
  const at = (moment) => ((moment - begin) / whole) * 100;
  return html`<figure class="timeline">
    ${LANES.map((lane) => {
      const own = spans.filter((span) => span.lane === lane);
      return html`<div class="lane" key=${lane}>
        <span class="lane-name small dim">${lane}</span>
        <span class="lane-track">
          ${own.map(
            (span, index) => html`<span
              key=${index}
              class=${`span ${span.kind}`}
              style=${{ insetInlineStart: `${at(span.begin)}%`, width: `max(2px, ${at(span.end) - at(span.begin)}%)` }}
              title=${`${span.label} · ${age(span.end - span.begin)}`}
            ></span>`,
          )}
        </span>
        <span class="lane-sum small">${own.length ? inSeconds(own) : ""}</span>
      </div>`;
    })}
    <figcaption class="small dim">${age(whole)} from the first step to the last</figcaption>
  </figure>`;
}

function inSeconds(spans) {
  const seconds = spans.reduce((sum, span) => sum + span.end - span.begin, 0);
  return seconds < 1
    ? `${Math.round(seconds * 1000)} ms`
    : age(seconds < 10 ? Math.round(seconds * 10) / 10 + 0.001 : seconds);
}
