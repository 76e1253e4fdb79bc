// A text of an agent on the screen. Preact owns the frame, the writer owns what is in it: a growing text costs its growth.

import { MarkdownWriter } from "./markdown_nodes.js";
import { effect, useLayoutEffect, useRef } from "../vendor.js";
import { copyText, html } from "./ui.js";

// A long text that arrives at once is written in parts, so that the page stays at hand.
const PART_CHARACTERS = 8_192;
const PART_MS = 8;
const COPIED_MS = 1_500;

/** `growing` gives the text of a piece that is still written, and reads the signal that changes with it. */
export function MarkdownView({ text, isWhole, growing = null }) {
  const frame = useRef(null);
  const state = useRef(null);
  useLayoutEffect(() => {
    state.current ??= new Writing(frame.current);
    if (growing) return effect(() => state.current.set(growing(), false));
    state.current.set(text, isWhole);
    return undefined;
  }, [text, isWhole, growing === null]);
  useLayoutEffect(() => () => state.current?.stop(), []);
  return html`<div class="words" ref=${frame} onClick=${copyCode}></div>`;
}

class Writing {
  constructor(frame) {
    this._frame = frame;
    this._timer = 0;
    this._begin("");
  }

  set(text, isWhole) {
    if (this._isEnded || text.length < this._written) {
      if (this._isEnded && text === this._text) return;
      this._begin(text);
    }
    this._text = text;
    this._isWhole = isWhole;
    this._go();
  }

  stop() {
    clearTimeout(this._timer);
  }

  _begin(text) {
    this.stop();
    this._frame.replaceChildren();
    this._writer = new MarkdownWriter(this._frame);
    this._text = text;
    this._written = 0;
    this._isEnded = false;
  }

  _go() {
    this.stop();
    const until = performance.now() + PART_MS;
    while (this._written < this._text.length) {
      const part = this._text.slice(this._written, this._written + PART_CHARACTERS);
      this._writer.write(part);
      this._written += part.length;
      if (performance.now() > until && this._written < this._text.length) {
        this._timer = setTimeout(() => this._go());
        return;
      }
    }
    if (this._isWhole && !this._isEnded) {
      this._isEnded = true;
      this._writer.end();
    }
  }
}

async function copyCode(event) {
  const button = event.target.closest(".code-copy");
  if (!button) return;
  const code = button.closest(".code").querySelector("code");
  const isCopied = await copyText(code.textContent);
  if (!isCopied) getSelection().selectAllChildren(code);
  button.textContent = isCopied ? "Copied" : "Selected";
  setTimeout(() => (button.textContent = "Copy"), COPIED_MS);
}
