/**
 * A backend whose leaderships are given back when this process dies. Between a
 * grant and the term on it the grant is put into the will; after a release it is
 * taken out. All else goes to the backend itself.
 */
import type { Stop } from "../seam/stop.js";
import type { Reading } from "../seam/clock.js";
import type {
  Backend,
  CallOptions,
  Claim,
  Extension,
  Hold,
  ReleaseOptions,
  Session,
} from "../seam/backend.js";
import type { HelperKind } from "./helper.js";
import { keeper, type Testator } from "./keeper.js";

export interface WillOptions {
  /** Opens the same store in another process. */
  readonly url: string;
  readonly imports?: readonly string[] | undefined;
  readonly processes?: (() => readonly number[]) | undefined;
  readonly kind: HelperKind;
}

/** `backend` as it is, if it cannot release in another's name. */
export async function withLastWill(backend: Backend, options: WillOptions): Promise<Backend> {
  if (backend.release === undefined) return backend;
  const warnings: string[] = [];
  let told: ((message: string) => void) | undefined;
  const testator: Testator = {
    url: options.url,
    imports: options.imports ?? [],
    processes: options.processes ?? (() => []),
    claims: new Map(),
    warn: (message) => (told === undefined ? void warnings.push(message) : told(message)),
  };
  await keeper().join(testator, options.kind);
  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await backend[Symbol.asyncDispose]();
    await keeper().leave(testator);
  };
  return {
    ...forwarded(backend),
    campaign: async (candidacy, call) => {
      const hold = await backend.campaign(candidacy, call);
      if (hold === null) return null;
      const { election, candidate } = candidacy;
      return bequeathed(hold, { election, candidate, token: hold.token }, testator);
    },
    onWarning: (listener) => {
      told ??= listener;
      for (const warning of warnings.splice(0)) told(warning);
      backend.onWarning?.(listener);
    },
    [Symbol.asyncDispose]: () => (closed ??= close()),
  };
}

function forwarded(backend: Backend): Omit<Backend, typeof Symbol.asyncDispose | "campaign" | "onWarning"> {
  const { name, guarantees, timing, records, list, release, evict, forget } = backend;
  return {
    ...{ name, guarantees, timing, records },
    observe: (election, options) => backend.observe(election, options),
    ...(release && { release: (claim, options) => release.call(backend, claim, options) }),
    ...(evict && { evict: (claim, options) => evict.call(backend, claim, options) }),
    ...(list && { list: (options) => list.call(backend, options) }),
    ...(forget && { forget: (election, options) => forget.call(backend, election, options) }),
  };
}

async function bequeathed(hold: Hold, claim: Claim, testator: Testator): Promise<Hold> {
  // One candidate has one leadership of an election at a time: an entry of an earlier one is replaced.
  const key = JSON.stringify([claim.election, claim.candidate]);
  testator.claims.set(key, claim);
  await keeper().write();
  return new BequeathedHold(hold, () => {
    if (testator.claims.get(key) !== claim) return;
    testator.claims.delete(key);
    void keeper().write();
  });
}

class BequeathedHold implements Hold {
  readonly token: bigint;
  readonly ttlMs: number;
  readonly #hold: Hold;
  readonly #givenBack: () => void;
  readonly abandon?: (at: number) => void;

  constructor(hold: Hold, givenBack: () => void) {
    this.#hold = hold;
    this.#givenBack = givenBack;
    this.token = hold.token;
    this.ttlMs = hold.ttlMs;
    if (hold.abandon) this.abandon = (at) => hold.abandon?.(at);
  }

  get asked(): Reading {
    return this.#hold.asked;
  }

  get revoked(): Stop | undefined {
    return this.#hold.revoked;
  }

  get session(): Session | undefined {
    return this.#hold.session;
  }

  renew(options: CallOptions): Promise<Extension | "lost"> {
    return this.#hold.renew(options);
  }

  proclaim(value: string, options: CallOptions): Promise<Extension | "lost"> {
    return this.#hold.proclaim(value, options);
  }

  /** If it fails the entry stays: what may still be held is given back by the will. */
  async release(options: ReleaseOptions): Promise<void> {
    await this.#hold.release(options);
    this.#givenBack();
  }
}
