/** `serve --observe-only`: all elections of a store over HTTP and on a page, without a candidate and without a button. */
import { dashboard } from "../dashboard/index.js";
import type { Election } from "../election/election.js";
import { systemClock } from "../kit/clock.js";
import { describe } from "../kit/errors.js";
import { sleep } from "../kit/wait.js";
import { createSidecar } from "../sidecar/index.js";
import type { Sidecar } from "../sidecar/index.js";
import { EXIT } from "../terminal/failure.js";
import { sidecarToken } from "../terminal/listen.js";
import { openLog } from "../terminal/log.js";
import type { Log } from "../terminal/log.js";
import { output } from "../terminal/output.js";
import { reader } from "./controls.js";
import { knownElections } from "./known-elections.js";
import type { ServeOptions } from "./serve.js";
import { stopOnSignals } from "./signals.js";
import { openStore } from "./store.js";
import type { Store } from "./store.js";

/** How often the store is asked for elections that were not there before. */
const LIST_AGAIN_MS = 10_000;

export async function observeOnly(names: readonly string[], options: ServeOptions): Promise<number> {
  const token = sidecarToken(options.tokenFile);
  const store = await openStore(options, { visitor: true });
  await using backend = store.backend;
  using stop = stopOnSignals();
  const { signal } = stop;
  const log = openLog(options.log, output(), "conclave");
  const chosen = names.length > 0 ? names : await knownElections(store, signal);
  const elections = chosen.map((name) => reader(backend, name));
  const { host, port } = options.listen;
  const ui = options.ui === true;
  try {
    await using sidecar = await createSidecar({
      elections,
      host,
      port,
      token,
      allowedHosts: options.allowHost,
      assets: ui ? await dashboard() : undefined,
      observeOnly: true,
    });
    log.note(`elections live in ${store.where}; they are observed, and nothing is changed`);
    log.note(`listening on ${sidecar.url}`);
    if (ui) log.note(`page: ${sidecar.url}/ui`);
    while (!signal.aborted) {
      await sleep(systemClock, LIST_AGAIN_MS, signal);
      if (names.length === 0 && !signal.aborted) await addNew(store, sidecar, elections, log, signal);
    }
  } finally {
    await Promise.all(elections.map((election) => election.close()));
  }
  return EXIT.ok;
}

async function addNew(
  store: Store,
  sidecar: Sidecar,
  elections: Election[],
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const known = new Set(elections.map(({ name }) => name));
  let found: readonly string[] = [];
  try {
    found = await knownElections(store, signal);
  } catch (error) {
    if (!signal.aborted) log.note(`the elections could not be listed: ${describe(error)}`);
  }
  for (const name of found) {
    if (known.has(name)) continue;
    const election = reader(store.backend, name);
    elections.push(election);
    sidecar.add(election);
  }
}
