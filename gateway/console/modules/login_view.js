// The login: a pairing code or a token, once; then the browser has a cookie that no script can read.

import { login, loginReason, sentence } from "./store.js";
import { ApiError } from "./api.js";
import { useState } from "../vendor.js";
import { html } from "./ui.js";

const CODE = /^[a-z0-9]{4}[- ]?[a-z0-9]{4}$/i;

export function LoginView() {
  const [typed, setTyped] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    const words = typed.trim();
    if (!words || isBusy) return;
    setBusy(true);
    try {
      await login(CODE.test(words) ? { code: words.replace(" ", "-").toUpperCase() } : { token: words });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      loginReason.value = sentence(error);
    } finally {
      setBusy(false);
    }
  };
  return html`<main class="login">
    <form class="login-card" onSubmit=${submit}>
      <${Mark} />
      <h1>hermes supervisor</h1>
      <p class="dim">
        On the machine where it runs, <code>hermesctl pair</code> prints a code that is valid for five minutes.
      </p>
      <label for="secret">Pairing code or token</label>
      <input
        id="secret"
        type=${CODE.test(typed.trim()) || !typed ? "text" : "password"}
        autocomplete="off"
        autocapitalize="characters"
        spellcheck=${false}
        placeholder="ABCD-EFGH"
        value=${typed}
        onInput=${(event) => setTyped(event.target.value)}
        autofocus
      />
      <p class="login-reason" role="alert">${loginReason}</p>
      <button class="primary" type="submit" disabled=${isBusy}>${isBusy ? "Logging in …" : "Log in"}</button>
    </form>
  </main>`;
}

export function Mark() {
  return html`<svg class="mark" viewBox="0 0 48 48" aria-hidden="true">
    <rect class="mark-ground" width="48" height="48" rx="12" />
    <path class="mark-wing" d="M12 31c8 0 12-4 13-14 2 5 1 9-1 12 4-1 7-5 8-10 3 8-2 17-12 17-4 0-7-2-8-5z" />
    <circle class="mark-dot" cx="35" cy="13" r="3" />
  </svg>`;
}
