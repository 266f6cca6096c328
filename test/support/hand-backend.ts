/** A backend in the hands of the test, on a virtual clock: every call is counted, and answered as the test says. */
import type {
  Backend,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Extension,
  Hold,
  Leader,
  ObserveOptions,
} from "../../src/seam/backend.js";
import { readClocks } from "../../src/kit/clock.js";
import { Election } from "../../src/election/election.js";
import type { ElectionOptions } from "../../src/api/options.js";
import { memoryBackend } from "../../src/backends/memory/index.js";
import { SetClock } from "./set-clock.js";

export const TTL_MS = 10_000;
/** 15 % of the ttl. */
export const MARGIN_MS = 1_500;
export const RENEW_MS = TTL_MS / 3;
export const ATTEMPT_MS = 2_500;
export const RETRY_MS = 2_000;
export const DRAIN_MS = 5_000;

export const silence = (): Promise<never> => new Promise(() => {});

export class HandBackend implements Backend {
  readonly name = "hand";
  readonly guarantees = memoryBackend().guarantees;
  readonly records = memoryBackend().records;
  readonly calls: string[] = [];
  readonly candidacies: Candidacy[] = [];
  closed = 0;
  token = 0n;
  /** What a hold is granted with, beside its token. */
  granted: Partial<Hold> = {};
  /** Called before each answer; what it throws means "not known". */
  onCampaign: (options: CampaignOptions) => unknown = () => {};
  onRenew: (options: CallOptions) => unknown = () => {};
  onProclaim: (options: CallOptions) => unknown = () => {};
  onRelease: (options: CallOptions) => unknown = () => {};
  leaders: (options: ObserveOptions) => AsyncIterable<Leader | null> = nobody;
  readonly #clock: SetClock;

  constructor(clock: SetClock) {
    this.#clock = clock;
  }

  /** How often this was called. */
  count(call: string): number {
    return this.calls.filter((each) => each === call).length;
  }

  async campaign(candidacy: Candidacy, options: CampaignOptions): Promise<Hold | null> {
    this.calls.push("campaign");
    this.candidacies.push(candidacy);
    const asked = readClocks(this.#clock);
    if ((await this.onCampaign(options)) === null) return null;
    const token = ++this.token;
    return {
      ...{ token, asked, ttlMs: candidacy.ttlMs },
      renew: (call) => this.#extend("renew", this.onRenew, call),
      proclaim: (_, call) => this.#extend("proclaim", this.onProclaim, call),
      release: async (call) => {
        this.calls.push("release");
        await this.onRelease(call);
      },
      ...this.granted,
    };
  }

  observe(_: string, options: ObserveOptions): AsyncIterable<Leader | null> {
    this.calls.push("observe");
    return this.leaders(options);
  }

  async #extend(
    call: string,
    on: (options: CallOptions) => unknown,
    options: CallOptions,
  ): Promise<Extension | "lost"> {
    this.calls.push(call);
    const asked = readClocks(this.#clock);
    return (await on(options)) === "lost" ? "lost" : { asked };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.closed++;
  }
}

async function* nobody({ signal }: ObserveOptions): AsyncGenerator<null, void, undefined> {
  yield null;
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

export interface Scene {
  readonly clock: SetClock;
  readonly backend: HandBackend;
  readonly election: Election;
  readonly logged: string[];
}

export function openScene(options: Partial<ElectionOptions> = {}): Scene {
  const clock = new SetClock();
  const backend = new HandBackend(clock);
  const logged: string[] = [];
  const log =
    (level: string) =>
    (message: string): void =>
      void logged.push(`${level}: ${message}`);
  const logger = { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  const election = new Election({ name: "e", backend, clock, ttlMs: TTL_MS, id: "c", logger, ...options });
  return { clock, backend, election, logged };
}

/** What a promise has become, if it has settled. */
export function outcome<T>(promise: Promise<T>): { value?: T; error?: unknown; settled: boolean } {
  const state: { value?: T; error?: unknown; settled: boolean } = { settled: false };
  promise.then(
    (value) => Object.assign(state, { value, settled: true }),
    (error: unknown) => Object.assign(state, { error, settled: true }),
  );
  return state;
}
