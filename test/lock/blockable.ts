import type { Backend, Hold } from "../../src/index.js";

/** A backend whose renewals can be made to fail. */
export class BlockableStore {
  blocked = false;
  readonly backend: Backend;

  constructor(inner: Backend) {
    const check = (): void => {
      if (this.blocked) throw new Error("the store is cut off");
    };
    this.backend = {
      name: inner.name,
      guarantees: inner.guarantees,
      records: inner.records,
      observe: (election, options) => inner.observe(election, options),
      campaign: async (candidacy, options) => {
        const hold = await inner.campaign(candidacy, options);
        return hold && guard(hold, check);
      },
      [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
    };
  }
}

function guard(hold: Hold, check: () => void): Hold {
  return {
    token: hold.token,
    asked: hold.asked,
    ttlMs: hold.ttlMs,
    revoked: hold.revoked,
    renew: async (options) => {
      check();
      return hold.renew(options);
    },
    proclaim: async (value, options) => {
      check();
      return hold.proclaim(value, options);
    },
    release: (options) => hold.release(options),
  };
}
