// Asks as the AI SDK does. Arguments: the folder of the packages, and a wish as JSON; prints the result as JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, wish] = [process.argv[2], JSON.parse(process.argv[3])];
const require = createRequire(folder + "/");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { generateText, streamText } = await load("ai");

const provider = createOpenAICompatible({
  name: "hermes",
  baseURL: wish.address + "/v1",
  apiKey: wish.key,
  headers: wish.headers,
  includeUsage: true,
});
const call = { model: provider("default"), messages: wish.messages };

async function stream() {
  const abort = new AbortController();
  const found = { text: "", parts: [], error: null };
  const answer = streamText({ ...call, abortSignal: abort.signal, onError: () => {} });
  for await (const part of answer.fullStream) {
    found.parts.push(part.type);
    if (part.type === "error") found.error = String(part.error?.message ?? part.error);
    if (part.type === "text-delta") {
      found.text += part.text;
      if (wish.stopAfter && found.text.includes(wish.stopAfter)) abort.abort();
    }
    if (part.type === "finish") Object.assign(found, { finish: part.finishReason, usage: part.totalUsage });
  }
  return found;
}

async function whole() {
  const answer = await generateText(call);
  return { text: answer.text, finish: answer.finishReason, usage: answer.usage };
}

console.log(JSON.stringify(await (wish.stream ? stream() : whole())));
