// What a person does in a session: each is a request, and a refusal becomes a sentence.

import { get, post, remove, sessionPath, turnPath } from "./api.js";
import { meantBy, proof } from "./event_words.js";
import { go } from "./place.js";
import { announce, attempt, isOnline, outbox, sessions, tell } from "./store.js";

/** Stops the running turn; false when none runs. The proof is the event that ends it. A second time ends an agent's grace. */
export function interrupt(conversation) {
  const turn = conversation.log.openTurn;
  if (!turn) return false;
  if (!isOnline.value) {
    tell("The supervisor is away, so nothing can be stopped now", "What runs is settled when it is back");
    return false;
  }
  conversation.interrupting.value = turn.id;
  attempt(async () => {
    try {
      const json = { expect_turn: turn.id };
      const found = await post(`${sessionPath(conversation.session)}/interrupt`, { json });
      if (found.unwritten) tell(`Stopped: ${proof(found)}`, `Not yet written down: ${found.unwritten}`, "plain");
      else if (found.turn) announce(`Interrupted: ${proof(found)}`);
    } finally {
      if (conversation.interrupting.value === turn.id) conversation.interrupting.value = "";
    }
  });
  return true;
}

/** Answers a question; `typed` may be the letter or the number of a choice. True when it was taken. */
export async function answer(question, typed) {
  const text = meantBy(typed, question.asks ?? question.kind, question.choices ?? []);
  const id = question.id ?? question.question;
  const path = `/api/questions/${encodeURIComponent(id)}/answer`;
  return (await attempt(() => post(path, { json: { text } }))) !== undefined;
}

export const drop = (session, message) =>
  attempt(() => remove(`${sessionPath(session)}/queue/${encodeURIComponent(message)}`));
export const dropAll = (session) => attempt(() => remove(`${sessionPath(session)}/queue`));
export const resume = (session) => attempt(() => post(`${sessionPath(session)}/queue/resume`));

export const retryTurn = (turn) => attempt(() => post(`${turnPath(turn)}/retry`, { key: crypto.randomUUID?.() }));

export function retryClip(message) {
  return attempt(() => post(`/api/messages/${encodeURIComponent(message)}/retry`, { key: crypto.randomUUID?.() }));
}

export const whyTurn = (turn) => get(`${turnPath(turn)}/why`);
export const whyMessage = (message) => get(`/api/messages/${encodeURIComponent(message)}/why`);
export const toolCall = (turn, call) => get(`${turnPath(turn)}/calls/${encodeURIComponent(call)}`);

/** Sends other words in place of a message: a branch that has all turns before it. Both branches stay. */
export async function sendEdited(session, turn, text) {
  const branch = await freeBranch(session);
  const json = { through_turn: turn.number - 1, session: branch };
  if (!(await attempt(() => post(`${sessionPath(session)}/fork`, { json, key: `fork ${branch}` })))) return false;
  outbox.add(branch, { text });
  go("talk", branch);
  return true;
}

const BRANCH = /^(.*)~(\d+)$/;

/** The name without the number of a branch. */
export const trunkOf = (session) => BRANCH.exec(session)?.[1] ?? session;

/** All branches of a session that are known, the trunk first. */
export function branchesOf(session) {
  const trunk = trunkOf(session);
  const numbers = [...sessions.value.keys()].filter((name) => trunkOf(name) === trunk && name !== trunk);
  if (session !== trunk && !numbers.includes(session)) numbers.push(session);
  if (!numbers.length) return [];
  return [trunk, ...numbers.sort((a, b) => branchNumber(a) - branchNumber(b))];
}

const branchNumber = (name) => Number(BRANCH.exec(name)?.[2] ?? 1);

async function freeBranch(session) {
  const trunk = trunkOf(session);
  const known = branchesOf(session);
  for (let number = 2; ; number += 1) {
    const name = `${trunk}~${number}`;
    if (!known.includes(name) && !(await exists(name))) return name;
  }
}

/** Also a branch that another client made, and that this page has not read. */
async function exists(session) {
  try {
    await get(`${sessionPath(session)}/queue`);
    return true;
  } catch (error) {
    return error.status !== 404;
  }
}

export const drain = () => attempt(() => post("/api/drain"));
export const undrain = () => attempt(() => post("/api/undrain"));
export const scale = (seats) => attempt(() => post("/api/scale", { json: { seats } }));
