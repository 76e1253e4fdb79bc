// Small parts that all screens use: templates, icons, buttons, texts.

import { neutral } from "./shown_text.js";
import { h, htm, useEffect, useRef } from "../vendor.js";

export const html = htm.bind(h);

const PATHS = {
  send: "M5 12h13M12 5l7 7-7 7",
  stop: "M7 7h10v10H7z",
  mic: "M12 15a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v6a3 3 0 0 0 3 3zM5 11a7 7 0 0 0 14 0M12 18v3",
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  watch: "M3 12h4l3-7 4 14 3-7h4",
  help: "M9.2 9a3 3 0 1 1 4.3 2.7c-.9.5-1.5 1.2-1.5 2.3M12 17.5v.01M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
  bell: "M18 9a6 6 0 0 0-12 0c0 6-2 7-2 7h16s-2-1-2-7M10.5 20a2 2 0 0 0 3 0",
  leave: "M10 4H5v16h5M15 8l4 4-4 4M19 12H9",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l4.5 4.5",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  retry: "M20 12a8 8 0 1 1-2.5-5.8M20 4v4h-4",
  copy: "M9 9h10v10H9zM5 15V5h10",
  why: "M12 8v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
  down: "M12 5v14M6 13l6 6 6-6",
  back: "M19 12H5M11 6l-6 6 6 6",
  fold: "M9 6l6 6-6 6",
  branch: "M7 5v14M7 12c6 0 10-1 10-6M17 6V4M7 5V3",
  theme: "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
};

export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d=${PATHS[name]} /></svg>`;
}

/** A button that is an icon for the eye and its label for everybody else. */
export function IconButton({ icon, label, class: name = "", ...rest }) {
  return html`<button type="button" class=${`icon-button ${name}`} aria-label=${label} title=${label} ...${rest}>
    <${Icon} name=${icon} />
  </button>`;
}

/** A text of a person, an agent or a tool: shown as it is, in its own direction. */
export function Text({ of, class: name = "", tag = "span" }) {
  return h(tag, { class: name, dir: "auto" }, neutral(of));
}

/** A dialog of the browser's own: it keeps the focus, and Esc closes it. */
export function Dialog({ title, onClose, children, class: name = "" }) {
  const dialog = useRef(null);
  useEffect(() => {
    const shown = dialog.current;
    shown.showModal();
    return () => shown.close();
  }, []);
  const outside = (event) => event.target === dialog.current && onClose();
  return html`<dialog ref=${dialog} class=${`dialog ${name}`} aria-label=${title} onClose=${onClose} onClick=${outside}>
    <div class="dialog-inner">
      <header class="dialog-head">
        <h2>${title}</h2>
        <${IconButton} icon="close" label="Close" onClick=${onClose} />
      </header>
      ${children}
    </div>
  </dialog>`;
}

/** Copies a text; without permission for the clipboard the person can still select it. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
