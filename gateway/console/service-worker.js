// Keeps the shell of the console, so that it opens without a network and says so itself. Nothing of the API is ever kept.

const SHELL = "hermes-shell";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

function isShell({ pathname, origin }) {
  const isFile = pathname === "/" || pathname === "/manifest.webmanifest" || pathname.startsWith("/console/");
  return isFile && origin === self.location.origin;
}

/** The first page was loaded before there was a worker: it names the files that it has. */
self.addEventListener("message", (event) => {
  const files = (event.data?.shell ?? []).filter((file) => isShell(new URL(file, self.location.origin)));
  event.waitUntil(caches.open(SHELL).then((shell) => shell.addAll(files)));
});

/** First the network: a page and its scripts are of one version. What was kept is for the time without it. */
self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || !isShell(new URL(event.request.url))) return;
  event.respondWith(fromNetwork(event.request));
});

async function fromNetwork(request) {
  const shell = await caches.open(SHELL);
  try {
    const answer = await fetch(request);
    if (answer.ok) await shell.put(request, answer.clone());
    return answer;
  } catch (error) {
    const kept = await shell.match(request, { ignoreSearch: true });
    if (kept) return kept;
    throw error;
  }
}

/** A notice leads to its session, in a page that is open if there is one. */
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { session } = event.notification.data ?? {};
  event.waitUntil(show(session));
});

async function show(session) {
  const [page] = await self.clients.matchAll({ type: "window" });
  if (!page) return self.clients.openWindow(`/#/talk/${encodeURIComponent(session)}`);
  page.postMessage({ session });
  return page.focus();
}
