// Light or dark: as the system has it, or as chosen here.

import { keep, kept } from "./kept.js";
import { effect, signal } from "../vendor.js";
import { IconButton, html } from "./ui.js";

const NEXT = { system: "light", light: "dark", dark: "system" };
const theme = signal(kept("theme", "system"));

effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});

export function ThemeButton() {
  const next = () => {
    theme.value = NEXT[theme.value];
    keep("theme", theme.value);
  };
  return html`<${IconButton} icon="theme" label=${`Theme: ${theme.value}`} onClick=${next} />`;
}
