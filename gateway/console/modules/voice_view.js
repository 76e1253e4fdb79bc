// The microphone button and what is on the screen while it is on. Hold to talk, or click and click again; Esc cancels.

import { MicrophoneFault, Recorder, SECONDS_MAX } from "./recorder.js";
import { announce, tell } from "./store.js";
import { signal, useEffect, useRef } from "../vendor.js";
import { IconButton, html } from "./ui.js";

/** off, starting, on */
export const recording = signal("off");
/** A recording that is not sent by itself: nothing was heard in it, or it ended before its time. */
export const doubtful = signal(null);

// A press that is shorter is a click: the recording goes on until the next one.
const HOLD_MS = 350;
let recorder = null;

async function begin(onRecorded) {
  if (recording.value !== "off") return;
  recording.value = "starting";
  doubtful.value = null;
  recorder = new Recorder((found) => {
    recorder = null;
    recording.value = "off";
    if (!found) return announce("The recording was cancelled");
    if (found.isSilent || found.why) doubtful.value = found;
    else onRecorded(found);
  });
  try {
    await recorder.start();
    if (recorder && recording.value === "starting") {
      recording.value = "on";
      announce("Recording");
    }
  } catch (error) {
    recorder = null;
    recording.value = "off";
    if (!(error instanceof MicrophoneFault)) throw error;
    tell(error.message, error.hint);
  }
}

export function finishRecording() {
  recorder?.stop();
}

/** True when there was one. */
export function cancelRecording() {
  if (recording.value === "off") return false;
  recording.value = "off";
  const cancelled = recorder;
  recorder = null;
  cancelled?.cancel();
  return true;
}

export function MicrophoneButton({ onRecorded }) {
  const pressedAt = useRef(0);
  const press = (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    if (recording.value === "on") return finishRecording();
    pressedAt.current = performance.now();
    event.currentTarget.setPointerCapture(event.pointerId);
    begin(onRecorded);
  };
  const release = () => {
    const held = performance.now() - pressedAt.current;
    if (pressedAt.current && held > HOLD_MS && recording.value === "on") finishRecording();
    pressedAt.current = 0;
  };
  // Clicks of the keyboard and of assistive technology have no pointer.
  const click = (event) => {
    if (event.detail !== 0) return;
    if (recording.value === "on") finishRecording();
    else begin(onRecorded);
  };
  const isOn = recording.value !== "off";
  return html`<${IconButton}
    icon=${isOn ? "send" : "mic"}
    class=${isOn ? "mic on" : "mic"}
    label=${isOn ? "Send the recording" : "Record a message: hold, or click twice"}
    aria-pressed=${isOn}
    onPointerDown=${press}
    onPointerUp=${release}
    onClick=${click}
  />`;
}

/** In place of the text while a recording runs. */
export function RecordingBar() {
  const canvas = useRef(null);
  const clock = useRef(null);
  useEffect(() => drawLevels(canvas.current, clock.current), []);
  return html`<div class="recording" role="group" aria-label="Recording">
    <span class="recording-dot" aria-hidden="true"></span>
    <span ref=${clock} class="recording-clock">0:00</span>
    <canvas ref=${canvas} class="meter" aria-hidden="true"></canvas>
    <button type="button" class="quiet" onClick=${cancelRecording}>Cancel</button>
  </div>`;
}

/** Draws the last seconds of the level; returns what ends it. */
function drawLevels(canvas, clock) {
  const context = canvas.getContext("2d");
  const levels = [];
  let frame = 0;
  const draw = () => {
    frame = requestAnimationFrame(draw);
    if (!recorder) return;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (canvas.width !== width) Object.assign(canvas, { width, height });
    levels.push(recorder.level());
    while (levels.length > width / 3) levels.shift();
    context.clearRect(0, 0, width, height);
    context.fillStyle = getComputedStyle(canvas).color;
    levels.forEach((level, index) => {
      const tall = Math.max(2, level * height);
      context.fillRect(width - (levels.length - index) * 3, (height - tall) / 2, 2, tall);
    });
    const left = SECONDS_MAX - recorder.seconds;
    clock.textContent = left < 60 ? `${Math.ceil(left)}s left` : minutes(recorder.seconds);
  };
  draw();
  return () => cancelAnimationFrame(frame);
}

/** Asks what to do with a recording that is perhaps not what was meant. */
export function DoubtfulRecording({ onRecorded }) {
  const found = doubtful.value;
  if (!found) return null;
  const fault = found.why
    ? `The recording ended after ${minutes(found.seconds)}: ${found.why}`
    : "Nothing was heard in this recording";
  const hint = found.why
    ? "Send what there is, or record again"
    : "Check that the right microphone is chosen and not muted, then record again";
  const send = () => {
    doubtful.value = null;
    onRecorded(found);
  };
  return html`<div class="doubtful" role="alert">
    <p>${fault}. <span class="dim">${hint}.</span></p>
    <span>
      <button type="button" class="quiet" onClick=${send}>Send it</button>
      <button type="button" class="quiet" onClick=${() => (doubtful.value = null)}>Discard</button>
    </span>
  </div>`;
}

const minutes = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
