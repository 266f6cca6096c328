import { recordsOf } from "../../src/kit/records.js";
import { ConclaveError } from "../../src/index.js";
import type { Backend, Hold, RecordStore } from "../../src/index.js";

/** A backend that can be cut off from its store: every request then fails, as a cable that was pulled. */
export class Cuttable {
  cut = false;
  readonly backend: Backend;

  constructor(inner: Backend) {
    const via = async <T>(call: () => Promise<T>): Promise<T> => {
      this.#check();
      const answer = await call();
      // The request may have been done; the answer does not come through.
      this.#check();
      return answer;
    };
    const stored = recordsOf(inner.records, "this test");
    const records: RecordStore = {
      read: (key, options) => via(() => stored.read(key, options)),
      write: (key, expected, record, options) => via(() => stored.write(key, expected, record, options)),
      [Symbol.asyncDispose]: () => stored[Symbol.asyncDispose](),
    };
    this.backend = {
      name: inner.name,
      guarantees: inner.guarantees,
      timing: inner.timing,
      records,
      observe: (election, options) => inner.observe(election, options),
      campaign: async (candidacy, options) => {
        this.#check();
        const hold = await inner.campaign(candidacy, options);
        if (hold !== null && this.cut) {
          await hold.release(options).catch(() => {});
          this.#check();
        }
        return hold && wrap(hold, via);
      },
      [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
    };
  }

  #check(): void {
    if (this.cut) throw new ConclaveError("unavailable", "cut off from the store");
  }
}

function wrap(hold: Hold, via: <T>(call: () => Promise<T>) => Promise<T>): Hold {
  return {
    token: hold.token,
    asked: hold.asked,
    ttlMs: hold.ttlMs,
    revoked: hold.revoked,
    renew: (options) => via(() => hold.renew(options)),
    proclaim: (value, options) => via(() => hold.proclaim(value, options)),
    release: (options) => via(() => hold.release(options)),
  };
}
