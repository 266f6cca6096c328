/**
 * Adds to an unprotected counter under the lock, again and again, and freezes
 * now and then in the middle. Arguments: URL of the store, name, counter's file,
 * readable id, how often.
 *
 * A freeze comes anywhere but between `held` and the rename that follows in the
 * same tick: no lease covers that, a fence does (test/fencing).
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { Lock, openBackend } from "../../../src/index.js";
import { say } from "../../support/say.js";

const [url, name, counter, id, times] = process.argv.slice(2);
const backend = await openBackend(url);
// A process that was stopped has requests that were not answered in time: said nowhere, since stderr is to stay empty.
const quiet = (): void => {};
const logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const lock = new Lock({ name: name!, backend, ttlMs: 2000, id: id!, logger });
let number = 0;
say({ event: "ready" });

function freeze(): void {
  say({ event: "frozen" });
  process.kill(process.pid, "SIGSTOP");
}

/** `false` = the lock was lost meanwhile, nothing was written. */
async function increment(key: string): Promise<boolean> {
  await using term = await lock.acquire();
  const { value, keys } = JSON.parse(readFileSync(counter!, "utf8")) as { value: number; keys: string[] };
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 10));
  if (Math.random() < 0.05) freeze();
  const next = JSON.stringify({ value: value + 1, keys: [...keys, key] });
  writeFileSync(`${counter!}.${id}`, next);
  if (!term.held) return false;
  renameSync(`${counter!}.${id}`, counter!);
  say({ event: "added", key });
  return true;
}

while (number < Number(times)) {
  const key = `${id}:${number + 1}`;
  if (await increment(key).catch((error: unknown) => (say({ event: "error", error: String(error) }), false)))
    number++;
}
say({ event: "finished" });
await lock.close();
await backend[Symbol.asyncDispose]();
process.disconnect();
