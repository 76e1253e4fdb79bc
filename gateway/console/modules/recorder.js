// The microphone: one recording at a time, its level, and sentences for everything that can go wrong. No screen.

/** A recording ends by itself here. */
export const SECONDS_MAX = 15 * 60;
/** The gateway refuses larger ones. */
export const BYTES_MAX = 25 * 1024 * 1024;
// Of the full scale: below it there was nothing but noise.
const SILENCE = 0.01;
const TYPES = ["audio/webm;codecs=opus", "audio/mp4", "audio/ogg;codecs=opus", "audio/webm"];
const BITS_A_SECOND = 32_000;

/** A fault of the microphone: a sentence, and what to do. */
export class MicrophoneFault extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint;
  }
}

/** Why this page can never record, or null. */
export function obstacle() {
  if (!window.isSecureContext) {
    return new MicrophoneFault(
      "Browsers give the microphone only to secure pages, and this address is not one",
      "Open it on the machine itself (http://localhost), through `ssh -L 8790:localhost:8790 HOST`, or set tls_cert and tls_key",
    );
  }
  if (!navigator.mediaDevices?.getUserMedia || !window.MediaRecorder) {
    return new MicrophoneFault("This browser cannot record sound", "Use a current browser, or drop a sound file here");
  }
  return null;
}

export class Recorder {
  /** `ended(recording)` is called once: with {blob, name, seconds, isSilent, why}, or null when it was cancelled. */
  constructor(ended) {
    this._ended = ended;
    this._isCancelled = false;
    this._why = "";
    this._loudest = 0;
    this._parts = [];
  }

  /** Resolves when the microphone is on. MicrophoneFault when that is impossible. */
  async start() {
    const found = obstacle();
    if (found) throw found;
    try {
      this._stream = await navigator.mediaDevices.getUserMedia({
        audio: { echoCancellation: true, noiseSuppression: true },
      });
    } catch (error) {
      throw microphoneFault(error);
    }
    if (this._isCancelled) return this._close();
    this._measure();
    const mimeType = TYPES.find((type) => MediaRecorder.isTypeSupported(type));
    this._recorder = new MediaRecorder(this._stream, { mimeType, audioBitsPerSecond: BITS_A_SECOND });
    this._recorder.ondataavailable = ({ data }) => data.size && this._parts.push(data);
    this._recorder.onstop = () => this._finish();
    this._recorder.onerror = () => this._stop("the recording failed in the browser");
    // Unplugged, or taken away by the system.
    this._stream.getAudioTracks()[0].onended = () => this._stop("the microphone is gone");
    this.startedAt = performance.now();
    this._recorder.start(1_000);
    this._timer = setTimeout(() => this._stop("15 minutes are the most"), SECONDS_MAX * 1000);
  }

  get seconds() {
    return this.startedAt === undefined ? 0 : (performance.now() - this.startedAt) / 1000;
  }

  /** The loudness now, between 0 and 1. */
  level() {
    if (!this._analyser) return 0;
    this._analyser.getFloatTimeDomainData(this._samples);
    let peak = 0;
    for (const sample of this._samples) peak = Math.max(peak, Math.abs(sample));
    this._loudest = Math.max(this._loudest, peak);
    return Math.min(1, Math.sqrt(peak));
  }

  stop() {
    this._stop("");
  }

  cancel() {
    this._isCancelled = true;
    this._stop("");
    if (!this._recorder) this._close();
  }

  _measure() {
    this._context = new AudioContext();
    this._analyser = this._context.createAnalyser();
    this._analyser.fftSize = 1024;
    this._samples = new Float32Array(this._analyser.fftSize);
    this._context.createMediaStreamSource(this._stream).connect(this._analyser);
    // Also while the level is not drawn.
    this._meter = setInterval(() => this.level(), 100);
  }

  _stop(why) {
    this._why ||= why;
    if (this._recorder?.state === "recording") this._recorder.stop();
  }

  _finish() {
    const seconds = this.seconds;
    this._close();
    if (this._isCancelled) return this._ended(null);
    const type = this._recorder.mimeType.split(";")[0];
    const blob = new Blob(this._parts, { type });
    const name = `recording.${type.split("/")[1]}`;
    return this._ended({ blob, name, seconds, isSilent: this._loudest < SILENCE, why: this._why });
  }

  _close() {
    clearTimeout(this._timer);
    clearInterval(this._meter);
    for (const track of this._stream?.getTracks() ?? []) {
      track.onended = null;
      track.stop();
    }
    this._context?.close();
    this._analyser = null;
  }
}

function microphoneFault({ name, message }) {
  const faults = {
    NotAllowedError: [
      "The browser does not give this page the microphone",
      "Allow it in the settings of the site, beside the address, then try again",
    ],
    NotFoundError: ["There is no microphone here", "Plug one in, or drop a sound file here"],
    NotReadableError: ["The microphone is in use, or does not answer", "Close what else uses it, then try again"],
  };
  return new MicrophoneFault(
    ...(faults[name] ?? [`The microphone did not start: ${message}`, "Try again, or drop a sound file here"]),
  );
}

/** Whether a dropped file can be sent as a clip; a sentence when not. */
export function clipFault(file) {
  const isSound =
    /^(audio|video)\//.test(file.type) || /\.(ogg|oga|opus|webm|mp3|m4a|mp4|wav|flac|aac)$/i.test(file.name);
  if (!isSound)
    return new MicrophoneFault(
      `${file.name} is no sound file`,
      "Sound files can be dropped here; put words into the message itself",
    );
  if (!file.size) return new MicrophoneFault(`${file.name} is empty`, "Choose another file");
  if (file.size > BYTES_MAX) {
    return new MicrophoneFault(
      `${file.name} has ${(file.size / 1024 / 1024).toFixed(0)} MiB, the limit is 25 MiB`,
      "Send it compressed (OGG/Opus), or in parts",
    );
  }
  return null;
}
