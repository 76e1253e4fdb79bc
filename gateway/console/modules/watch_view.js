// The service at work: seats with their signs of life, services, open questions, turns, and what may be done about them.

import { drain, scale, undrain } from "./actions.js";
import { get, post, sessionPath } from "./api.js";
import { age, clock, counted, grouped, proof, size } from "./event_words.js";
import { Choices, QuestionText } from "./question_view.js";
import { linePoints } from "./samples.js";
import { SeatCount } from "./seat_count.js";
import { oneLine } from "./shown_text.js";
import { attempt, may, questions, samples, service, tell } from "./store.js";
import { useEffect, useState } from "../vendor.js";
import { Icon, IconButton, Text, html } from "./ui.js";

const STATES = ["", "running", "queued", "asking", "done", "interrupted", "failed", "poison"];
const TURNS_SHOWN = 30;
const TURNS_MS = 3_000;
// As the supervisor judges them (docs/architecture.md): a pulse is due every 15 s, a beat every second.
const LATE_SECONDS = { process: 15, loop: 15, progress: 120 };

export function WatchView({ onMenu, onWhy }) {
  const now = service.value;
  return html`<main class="watch">
    <header class="head">
      <${IconButton} icon="menu" class="menu" label="Sessions" onClick=${onMenu} />
      <div class="head-title"><h1>Watch</h1><p class="small dim">${now ? summary(now.status) : "reading …"}</p></div>
      ${now && html`<${Controls} status=${now.status} />`}
    </header>
    <div class="scroll" tabindex="0" role="region" aria-label="The service">
      <div class="wide-column">
        ${now && html`<${Hints} status=${now.status} /><${Numbers} status=${now.status} workers=${now.workers} />`}
        <${Questions} />
        ${now && html`<${Seats} workers=${now.workers} /><${Services} services=${now.services} />`}
        <${Turns} onWhy=${onWhy} />
      </div>
    </div>
  </main>`;
}

function summary({ state, version, uptime_seconds: up, model }) {
  return `${state} · version ${version} · up ${age(up)} · ${oneLine(model)}`;
}

function Hints({ status }) {
  return (status.hints ?? []).map((hint) => html`<p class="hint" key=${hint}>! <${Text} of=${oneLine(hint)} /></p>`);
}

function Controls({ status }) {
  const [count] = useState(() => new SeatCount());
  const [, setChanges] = useState(0);
  useEffect(() => {
    count.take(status.seats);
    setChanges((changes) => changes + 1);
  }, [status]);
  const wanted = count.shown(status.seats);
  const change = async (by) => {
    const asked = scale(count.ask(status.seats, by));
    setChanges((changes) => changes + 1);
    count.answered((await asked) !== undefined);
    setChanges((changes) => changes + 1);
  };
  return html`<div class="controls">
    <span class="stepper" role="group" aria-label="Seats">
      <button type="button" aria-label="One seat less" disabled=${wanted <= 1} onClick=${() => change(-1)}>−</button>
      <span>${wanted} seats</span>
      <button type="button" aria-label="One seat more" onClick=${() => change(1)}>+</button>
    </span>
    ${
      status.draining
        ? html`<button type="button" class="quiet strong" onClick=${undrain}>Undrain</button>`
        : html`<button type="button" class="quiet" title="Start no turn from now on; what runs is finished"
              onClick=${drain}>Drain</button>`
    }
  </div>`;
}

function Numbers({ status, workers }) {
  const memory = workers.reduce((sum, worker) => sum + (worker.memory_bytes ?? 0), 0);
  const cpu = workers.reduce((sum, worker) => sum + (worker.cpu_percent ?? 0), 0);
  return html`<section class="numbers" aria-label="Numbers">
    <${Number_} name="busy" label="busy seats" value=${`${status.busy} of ${status.seats}`} />
    <${Number_} name="waiting" label="queued and waiting" value=${status.queued + status.waiting} />
    <${Number_} name="ended" label="turns ended" value=${grouped(status.turns_ended)} />
    <${Number_} name="cpu" label="CPU of workers" value=${`${cpu.toFixed(0)} %`} />
    <${Number_} name="memory" label="memory of workers" value=${size(memory)} />
    <${Number_} name="lag" label="lag of the loop" value=${`${(status.lag_ms ?? 0).toFixed(1)} ms`} />
  </section>`;
}

function Number_({ name, label, value }) {
  return html`<div class="number">
    <span class="number-value">${value}</span>
    <span class="small dim">${label}</span>
    <svg class="spark" viewBox="0 0 120 28" preserveAspectRatio="none" aria-hidden="true">
      <polyline points=${linePoints(samples.of(name), 120, 28)} />
    </svg>
  </div>`;
}

function Questions() {
  const rows = questions.value;
  if (!rows.length) return null;
  return html`<section aria-label="Questions">
    <h2>Questions</h2>
    <ul class="cards">
      ${rows.map(
        (row) => html`<li class="question open" key=${row.question}>
          <p class="small dim"><a href=${`#/talk/${encodeURIComponent(row.session)}`}>${row.session}</a> · asked ${clock(row.at)}</p>
          <${QuestionText} question=${row} />
          ${may("talk") && html`<${Choices} question=${row} />`}
        </li>`,
      )}
    </ul>
  </section>`;
}

function Seats({ workers }) {
  return html`<section aria-label="Seats">
    <h2>Seats</h2>
    <ul class="seats">
      ${workers.map((worker) => html`<${Seat} key=${worker.seat} worker=${worker} />`)}
    </ul>
  </section>`;
}

function Seat({ worker }) {
  const facts = [
    worker.pid && `pid ${worker.pid}`,
    worker.memory_bytes !== null && size(worker.memory_bytes),
    worker.cpu_percent !== null && `${worker.cpu_percent?.toFixed(0)} % CPU`,
    worker.processes > 1 && `${worker.processes} processes`,
  ].filter(Boolean);
  return html`<li class=${`seat ${worker.state}`}>
    <div class="seat-head">
      <span class="seat-number">${worker.seat}</span>
      <span class=${`state ${worker.state}`}>${worker.state}</span>
      <span class="seat-session">${
        worker.session &&
        html`<a href=${`#/talk/${encodeURIComponent(worker.session)}`}><${Text} of=${worker.turn ?? worker.session} /></a>`
      }</span>
      ${
        worker.turn &&
        may("talk") &&
        html`<button type="button" class="quiet stop-text" onClick=${() => interruptSeat(worker)}><${Icon} name="stop" /> Stop</button>`
      }
    </div>
    <div class="signs">
      ${["process", "loop", "progress"].map((sign) => html`<${Sign} key=${sign} name=${sign} seconds=${worker[sign]} />`)}
    </div>
    <p class="small dim">${facts.join(" · ")}${facts.length ? " · " : ""}${age(Math.floor(worker.age_seconds))} old</p>
    ${worker.words && html`<p class="small"><${Text} of=${oneLine(worker.words)} /></p>`}
  </li>`;
}

function Sign({ name, seconds }) {
  const isKnown = typeof seconds === "number";
  const state = !isKnown ? "none" : seconds > LATE_SECONDS[name] ? "late" : "fresh";
  const shown = isKnown ? `${name} ${age(Math.round(seconds))}` : `${name} –`;
  return html`<span class=${`sign ${state}`} title=${`the last sign of its ${name}`}>${shown}</span>`;
}

async function interruptSeat({ session, turn }) {
  const found = await attempt(() => post(`${sessionPath(session)}/interrupt`, { json: { expect_turn: turn } }));
  if (found?.turn) tell(`${found.turn} interrupted: ${proof(found)}`, "", "plain");
}

function Services({ services }) {
  if (!services.length) return null;
  return html`<section aria-label="Services">
    <h2>Services</h2>
    <ul class="services">
      ${services.map(
        (row) => html`<li key=${row.service}>
          <span class=${`state ${row.state}`}>${row.state}</span>
          <strong>${row.service}</strong>
          <${Text} class="dim small" of=${oneLine([row.detail, row.address].filter(Boolean).join(" · "))} />
          <span class="dim small">
            ${[row.pid && `pid ${row.pid}`, row.restarts && counted(row.restarts, "restart")].filter(Boolean).join(" · ")}
          </span>
          ${row.hint && html`<span class="small">! <${Text} of=${oneLine(row.hint)} /></span>`}
        </li>`,
      )}
    </ul>
  </section>`;
}

function Turns({ onWhy }) {
  const [state, setState] = useState("");
  const [rows, setRows] = useState(null);
  useEffect(() => {
    let isCurrent = true;
    const read = () =>
      attempt(async () => {
        if (document.hidden) return;
        const page = await get(`/api/turns?limit=${TURNS_SHOWN}${state ? `&state=${state}` : ""}`);
        if (isCurrent) setRows(page.turns);
      });
    read();
    const timer = setInterval(read, TURNS_MS);
    return () => {
      isCurrent = false;
      clearInterval(timer);
    };
  }, [state]);
  return html`<section aria-label="Turns">
    <div class="section-head">
      <h2>Turns</h2>
      <label class="small dim">
        state${" "}
        <select value=${state} onChange=${(event) => setState(event.target.value)}>
          ${STATES.map((name) => html`<option key=${name} value=${name}>${name || "all"}</option>`)}
        </select>
      </label>
    </div>
    ${rows && !rows.length && html`<p class="dim">none</p>`}
    <ul class="turns">
      ${(rows ?? []).map(
        (row) => html`<li key=${row.turn}>
          <button type="button" class="turn-row" onClick=${() => onWhy(row.turn)}>
            <span class=${`state ${row.state}`}>${row.state}</span>
            <${Text} class="turn-name" of=${row.turn} />
            <span class="dim small">${turnFacts(row)}</span>
            <${Icon} name="why" />
          </button>
        </li>`,
      )}
    </ul>
  </section>`;
}

function turnFacts(row) {
  const begun = row.opened_at ?? row.at;
  const ended = row.ended_at;
  return [
    begun && clock(begun),
    begun && ended && age(ended - begun),
    row.attempts > 1 && `${row.attempts} attempts`,
    row.pid && `worker ${row.worker}`,
  ]
    .filter(Boolean)
    .join(" · ");
}
