// The state of the page, as signals, and the one connection that feeds it.

import { ApiError, get, onSignedOut, post } from "./api.js";
import { Conversation } from "./conversation.js";
import { forgetKept, keep, kept, onKeptElsewhere } from "./kept.js";
import { Live } from "./live.js";
import { Outbox } from "./outbox.js";
import { Samples } from "./samples.js";
import { computed, signal } from "../vendor.js";

// How long the page says that it is back.
const BACK_MS = 4_000;
const SESSIONS_PAGE = 100;
const ROWS_MS = 50;

/** Who is logged in: null until it is known, false when the login has ended. */
export const me = signal(null);
/** Why the page asks for a login, in a sentence. */
export const loginReason = signal("");
/** connecting, up, away (no gateway), waiting (a gateway without its supervisor), back (up, for a moment) */
export const link = signal("connecting");
/** {session: row}, as the server tells them; `seenSeqs` says which have news. */
export const sessions = signal(new Map());
export const moreSessions = signal("");
export const seenSeqs = signal(kept("seen", {}));
export const questions = signal([]);
export const service = signal(null);
export const samples = new Samples();
/** Sentences at the edge of the screen: {id, fault, hint, tone}. */
export const toasts = signal([]);
/** What a screen reader is told. */
export const announcement = signal("");

export const may = (right) => Boolean(me.value?.rights?.includes(right));
export const isOnline = computed(() => link.value === "up" || link.value === "back");

const conversations = new Map();
const listeners = new Set();
let watched = [];

const live = new Live({
  take: takeFrame,
  changed: (isUp) => (isUp ? connected() : disconnected()),
  ended: () => checkLogin(),
});

export const outbox = new Outbox(({ session, message }) => {
  const conversation = conversations.get(session);
  if (!conversation) return outbox.forgetArrived(session, new Set([message]));
  conversation.begin();
  forgetArrived(conversation);
});

/** Calls with (conversation, event) for every durable event that is new. */
export function onEvent(listener) {
  listeners.add(listener);
}

/** The conversation with a session; it is followed as long as the page is open. */
export function conversationWith(session) {
  let conversation = conversations.get(session);
  if (!conversation) {
    conversation = new Conversation(session, live, heard);
    conversations.set(session, conversation);
    if (live.isUp) conversation.follow();
    forgetOldConversations();
  }
  return conversation;
}

const CONVERSATIONS_MAX = 20;

function forgetOldConversations() {
  const [oldest] = conversations.keys();
  if (conversations.size > CONVERSATIONS_MAX) {
    conversations.get(oldest).leave();
    conversations.delete(oldest);
  }
}

/** Has the server tell of these tables: sessions, questions, service. */
export function watch(tables) {
  watched = tables;
  live.send({ watch: tables });
}

// --- login

export async function start(code) {
  onSignedOut(signOut);
  onKeptElsewhere((name) => name === "seen" && (seenSeqs.value = kept("seen", {})));
  if (code) await login({ code }).catch((error) => (loginReason.value = sentence(error)));
  if (!me.value) await checkLogin();
}

export async function login(credentials) {
  await post("/api/login", { json: credentials, isLogin: true });
  loginReason.value = "";
  await checkLogin();
}

export async function logout() {
  live.close();
  await post("/api/logout", { isLogin: true }).catch(() => {});
  forgetKept();
  location.reload();
}

async function checkLogin() {
  try {
    const found = await get("/api/me");
    if (!me.value) {
      me.value = found;
      live.open();
      outbox.pump();
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status !== 401 && me.value === null) setTimeout(checkLogin, 1_000);
    if (error.status !== 401) link.value = "away";
  }
}

function signOut() {
  if (me.value) loginReason.value = "This browser was signed out. What you typed is kept; log in again to go on.";
  me.value = false;
  live.close();
}

// --- the connection

function connected() {
  setLink("up");
  if (watched.length) live.send({ watch: watched });
  for (const conversation of conversations.values()) conversation.follow();
  outbox.pump();
  if (!sessions.value.size) readSessions();
}

function disconnected() {
  setLink("away");
  for (const conversation of conversations.values()) conversation.lost();
}

let backTimer = 0;

function setLink(next) {
  const before = link.value;
  if (next === before || (next === "up" && before === "back")) return;
  clearTimeout(backTimer);
  const isBack = next === "up" && (before === "away" || before === "waiting");
  link.value = isBack ? "back" : next;
  if (isBack) backTimer = setTimeout(() => link.value === "back" && (link.value = "up"), BACK_MS);
  if (isBack) outbox.pump();
}

function takeFrame(frame) {
  if (frame.type === "sessions") takeSessions(frame.rows);
  else if (frame.type === "questions") questions.value = frame.rows;
  else if (frame.type === "service") takeService(frame);
  else if (frame.type === "supervisor") setLink(frame.up ? "up" : "waiting");
  else conversationOf(frame)?.take(frame);
}

function conversationOf({ session, turn }) {
  // A note about a clip names the message in place of a turn, and no session.
  if (session === "" && turn) return [...conversations.values()].find((each) => each.log.messages.has(turn));
  return conversations.get(session);
}

function heard(conversation, event) {
  forgetArrived(conversation);
  noteRow(conversation, event);
  for (const listener of listeners) listener(conversation, event);
}

function forgetArrived(conversation) {
  outbox.forgetArrived(conversation.session, conversation.log.messages);
}

function takeService({ status, workers, services }) {
  service.value = { status, workers, services };
  samples.take(status, workers);
}

// --- sessions

export async function readSessions(after = "") {
  try {
    const page = await get(`/api/sessions?limit=${SESSIONS_PAGE}${after ? `&after=${encodeURIComponent(after)}` : ""}`);
    takeSessions(page.sessions);
    moreSessions.value = page.more;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}

export async function searchSessions(words) {
  const page = await get(`/api/sessions?limit=50&words=${encodeURIComponent(words)}`);
  return page.sessions;
}

function takeSessions(rows) {
  if (!rows.length) return;
  const known = new Map(sessions.value);
  for (const row of rows) known.set(row.session, { ...known.get(row.session), ...row });
  sessions.value = known;
  // A session that is shown here as new has begun elsewhere.
  for (const row of rows) if (row.seq) conversations.get(row.session)?.begin();
}

const changedRows = new Map();

/** Hundreds of events may come at once: the list is drawn for the last of them. */
function noteRow(conversation, event) {
  if (!changedRows.size) {
    setTimeout(() => {
      takeSessions([...changedRows.values()]);
      changedRows.clear();
    }, ROWS_MS);
  }
  changedRows.set(conversation.session, rowOf(conversation, event));
}

/** What the events of an open session say about its row, before the server does. */
function rowOf({ session, log }, event) {
  const state = log.openTurn ? "occupied" : log.isHeld ? "held" : "free";
  return { session, seq: log.seq, last_at: event.at, state, waiting: log.waiting.length };
}

/** The newest first. */
export const sessionList = computed(() =>
  [...sessions.value.values()].sort((a, b) => (b.last_at ?? 0) - (a.last_at ?? 0)),
);

export function see(session, seq) {
  if (!seq || seenSeqs.value[session] >= seq) return;
  seenSeqs.value = { ...seenSeqs.value, [session]: seq };
  keep("seen", seenSeqs.value);
}

/** A session that this browser never showed has no news. */
export function hasNews(row) {
  const seen = seenSeqs.value[row.session];
  return seen !== undefined && row.seq > seen;
}

// --- sentences

let toastNumber = 0;

export function tell(fault, hint = "", tone = "fault") {
  const id = ++toastNumber;
  toasts.value = [...toasts.value.slice(-3), { id, fault, hint, tone }];
  if (tone !== "fault") setTimeout(() => dismiss(id), 5_000);
}

export function dismiss(id) {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Runs an action of a person; a refusal becomes a sentence. Returns what it gives, or undefined. */
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status !== 401) tell(capital(error.message), capital(error.hint));
    return undefined;
  }
}

export const sentence = (error) => [error.message, error.hint].filter(Boolean).map(capital).join(". ");
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export function announce(text) {
  announcement.value = text;
}
