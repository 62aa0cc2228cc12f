/* The course's Python in a worker: Pyodide from this site, with the library already
   loaded (tools/browser.py takes the snapshot). One question at a time. */
import { loadPyodide } from "./vendor/pyodide/pyodide.mjs";

const VERSION = new URL(self.location).search;

function own(name) {
  return new URL(`./vendor/whatif/${name}${VERSION}`, self.location);
}

async function snapshot() {
  const answer = await fetch(own("library.snap"));
  if (!answer.ok) throw new Error(`the library is not there (${answer.status})`);
  const plain = answer.body.pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

async function start() {
  const python = await loadPyodide({ _loadSnapshot: snapshot() });
  return { python, replyTo: python.globals.get("reply_to") };
}

function because(error) {
  return String(error?.message ?? error).trim().split("\n").pop();
}

// Where its program is missing, Pyodide neither starts nor gives up: it lets go of an error.
self.addEventListener("unhandledrejection", (event) => {
  self.postMessage({ failure: because(event.reason) });
});

const ready = start();

self.onmessage = async ({ data: { id, name, request } }) => {
  try {
    const { python, replyTo } = await ready;
    const reply = replyTo(name, request);
    self.postMessage({ id, reply, memory: python._module.HEAP8.length });
  } catch (error) {
    self.postMessage({ id, failure: because(error) });
  }
};
