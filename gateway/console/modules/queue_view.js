// What waits behind the running turn, and what is on its way there: seen, dropped, resumed.

import { drop, dropAll, resume } from "./actions.js";
import { oneLine } from "./shown_text.js";
import { capital, isOnline, may, outbox } from "./store.js";
import { IconButton, Text, html } from "./ui.js";

const SHOWN_MAX = 6;

export function QueueView({ conversation, onPutBack }) {
  const version = conversation.shape.value;
  const { log, session } = conversation;
  const waiting = log.waiting;
  const outgoing = outbox.of(session);
  if (!waiting.length && !outgoing.length) return null;
  const isHeld = waiting.length > 0 && log.isHeld;
  return html`<section class="queue" aria-label="Waiting messages">
    ${
      waiting.length > 0 &&
      html`<header class="queue-head">
      <span class=${isHeld ? "held" : "dim"}>
        ${isHeld ? "held by the interrupt until your next message" : `${waiting.length} waiting`}
      </span>
      <span>
        ${isHeld && may("talk") && html`<button type="button" class="quiet" onClick=${() => resume(session)}>Resume</button>`}
        ${
          waiting.length > 1 &&
          may("talk") &&
          html`<button type="button" class="quiet" onClick=${() => dropAll(session)}>Drop all</button>`
        }
      </span>
    </header>`
    }
    <ol>
      ${waiting
        .slice(0, SHOWN_MAX)
        .map(
          (message, index) =>
            html`<${Waiting} key=${message.id} number=${index + 1} message=${message} version=${version} session=${session} />`,
        )}
      ${waiting.length > SHOWN_MAX && html`<li class="dim small">and ${waiting.length - SHOWN_MAX} more</li>`}
      ${outgoing.map((item) => html`<${Outgoing} key=${item.key} item=${item} onPutBack=${onPutBack} />`)}
    </ol>
  </section>`;
}

function Waiting({ number, message, session }) {
  const words = oneLine(message.text) || (message.kind === "voice" ? oneLine(message.note) || "🎙️ listening …" : "…");
  return html`<li class="waiting">
    <span class="dim" aria-hidden="true">${number}</span>
    <${Text} class="waiting-words" of=${words} />
    <span class="dim small">${message.state === "transcribing" ? "is transcribed" : (message.busy ?? "waits")}</span>
    ${may("talk") && html`<${IconButton} icon="close" label="Take this message back" onClick=${() => drop(session, message.id)} />`}
  </li>`;
}

function Outgoing({ item, onPutBack }) {
  const words = item.clip ? `🎙️ ${item.clip.name}` : oneLine(item.text) || "🎙️";
  if (item.state === "refused") {
    return html`<li class="waiting refused" role="alert">
      <div>
        <${Text} class="waiting-words" of=${words} />
        <p class="fault small">Not taken: ${item.fault}. ${capital(item.hint)}</p>
      </div>
      <span class="waiting-tools">
        <button type="button" class="quiet" onClick=${() => outbox.again(item.key)}>Send again</button>
        ${!item.clip && html`<button type="button" class="quiet" onClick=${() => onPutBack(item)}>Edit</button>`}
        <${IconButton} icon="close" label="Discard" onClick=${() => outbox.remove(item.key)} />
      </span>
    </li>`;
  }
  const state =
    item.state === "accepted" ? "accepted" : isOnline.value ? "sending" : "kept, is sent when the service is back";
  return html`<li class="waiting">
    <span class="dim" aria-hidden="true">↑</span>
    <${Text} class="waiting-words" of=${words} />
    <span class="dim small">${state}</span>
    ${
      !isOnline.value &&
      item.state === "sending" &&
      html`<${IconButton} icon="close" label="Do not send this" onClick=${() => outbox.remove(item.key)} />`
    }
  </li>`;
}
