// usage: node tools/snapshot.mjs LIBRARY.zip SNAPSHOT
// Pyodide's memory after it has imported the library and answered every what-if once.
import { readFileSync, writeFileSync } from "node:fs";
import { loadPyodide } from "pyodide";

const [library, snapshot] = process.argv.slice(2);
const python = await loadPyodide({ _makeSnapshot: true });
python.unpackArchive(new Uint8Array(readFileSync(library)), "zip", { extractDir: "/library" });
python.runPython(`
import sys
sys.path.insert(0, "/library")
from commwall.whatif import WHAT_IFS
from commwall.whatif.element import reply

def reply_to(name, request):
    return reply(WHAT_IFS[name], request)

for name in WHAT_IFS:
    reply_to(name, '{"texts": {}, "width": 640, "csv": true}')
`);
writeFileSync(snapshot, python.makeMemorySnapshot());
