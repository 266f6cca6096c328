/** What one test works with: backends that are closed, calls that are aborted and faults that are healed after it. */
import { setMaxListeners } from "node:events";
import type {
  Backend,
  CallOptions,
  CampaignOptions,
  Candidacy,
  Extension,
  Hold,
  Leader,
} from "../../core/backend.js";
import { systemClock } from "../../core/clock.js";
import { Election } from "../../core/election.js";
import type { ElectionOptions } from "../../core/options.js";
import { ConformanceFailure, check, present } from "./check.js";
import { Child } from "./child.js";
import type { Faults } from "./faults.js";
import { Follower } from "./follower.js";
import type { ConformanceOptions } from "./options.js";

/** "Soon", on a machine that is busy with other things. */
const SOON_MS = 10_000;
const RETRY_MS = 100;
const ATTEMPT_MS = 5_000;

export class Stage {
  readonly rounds: number;
  readonly #options: ConformanceOptions;
  readonly #backends: Backend[] = [];
  readonly #elections: Election[] = [];
  readonly #children: Child[] = [];
  readonly #over = new AbortController();

  constructor(options: ConformanceOptions) {
    this.#options = options;
    this.rounds = options.rounds ?? 20;
    setMaxListeners(0, this.#over.signal); // many calls of one test share it
  }

  /** Aborts when the test is over. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get faults(): Required<Faults> {
    const faults = this.#options.faults;
    const missing = (): never => {
      throw new ConformanceFailure("the test uses a fault that it does not list in its needs");
    };
    return {
      cut: () => (faults?.cut ?? missing).call(faults),
      deafen: () => (faults?.deafen ?? missing).call(faults),
      slow: (delayMs) => (faults?.slow ?? missing).call(faults, delayMs),
      heal: () => faults?.heal(),
    };
  }

  now(): number {
    return systemClock.now();
  }

  async open(): Promise<Backend> {
    const backend = await this.#options.backend();
    this.#backends.push(backend);
    return backend;
  }

  openMany(count: number): Promise<Backend[]> {
    return Promise.all(Array.from({ length: count }, () => this.open()));
  }

  /** A name nobody has used, which every store can bear. */
  name(): string {
    return `conformance-${systemClock.uniqueId()}`;
  }

  /** A lease the backend can keep: as short as the tests want it, or at least `atLeastMs`. */
  ttlMs({ guarantees }: Backend, atLeastMs = 0): number {
    const { minMs, stepMs } = guarantees.ttl;
    const wanted = Math.max(this.#options.ttlMs ?? 1_000, minMs, atLeastMs);
    return Math.ceil(wanted / stepMs) * stepMs;
  }

  candidacy(backend: Backend, election: string, changes: Partial<Candidacy> = {}): Candidacy {
    return {
      election,
      candidate: `candidate-${systemClock.uniqueId()}`,
      value: "somewhere",
      ttlMs: this.ttlMs(backend),
      retryMs: RETRY_MS,
      attemptMs: ATTEMPT_MS,
      ...changes,
    };
  }

  /** Stands. `changes` may fix the candidate, the ttl, the signal, … */
  stand(
    backend: Backend,
    election: string,
    changes: Partial<Candidacy & CampaignOptions> = {},
  ): Promise<Hold | null> {
    const { wait = true, signal = this.signal, ...rest } = changes;
    return backend.campaign(this.candidacy(backend, election, rest), { wait, signal });
  }

  /** Stands, and must win soon. */
  async win(
    backend: Backend,
    election: string,
    changes: Partial<Candidacy & CampaignOptions> = {},
  ): Promise<Hold> {
    const hold = await this.soon(
      this.stand(backend, election, changes),
      `standing for ${election} must succeed`,
      SOON_MS + 2 * (changes.ttlMs ?? this.ttlMs(backend)),
    );
    return present(hold, `standing for ${election} must give a hold`);
  }

  /** Extends, and must succeed. */
  async renew(hold: Hold): Promise<Extension> {
    const answer = await this.soon(hold.renew(this.call()), "renewing must be answered");
    check(answer !== "lost", `renewing token ${hold.token} must succeed, but the backend says "lost"`);
    return answer;
  }

  async release(hold: Hold): Promise<void> {
    await this.soon(hold.release(this.call()), "releasing must be answered");
  }

  call(): CallOptions {
    return { signal: this.signal };
  }

  /** Follows who leads and keeps all it is told. */
  follow(backend: Backend, election: string, pollMs = 500): Follower {
    const options = { signal: this.signal, pollMs, attemptMs: ATTEMPT_MS };
    return new Follower(backend.observe(election, options), (promise, what) => this.soon(promise, what));
  }

  /** Who leads, by a fresh look. */
  async leader(backend: Backend, election: string): Promise<Leader | null> {
    const looked = new AbortController();
    try {
      const options = { signal: looked.signal, pollMs: 500, attemptMs: ATTEMPT_MS };
      const first = backend.observe(election, options)[Symbol.asyncIterator]().next();
      const result = await this.soon(first, `asking who leads ${election}`);
      check(result.done !== true, `observing ${election} must say who leads before it ends`);
      return result.value;
    } finally {
      looked.abort();
    }
  }

  election(backend: Backend, name: string, options: Partial<ElectionOptions> = {}): Election {
    const election = new Election({ ttlMs: this.ttlMs(backend, 2_000), ...options, name, backend });
    this.#elections.push(election);
    return election;
  }

  child(election: string, ttlMs: number): Child {
    const start = present(this.#options.child, "the option child");
    const child = new Child(start({ election, ttlMs }), (promise, what, ms) => this.soon(promise, what, ms));
    this.#children.push(child);
    return child;
  }

  /** Waits, but not for ever: what does not come in time is a failure that says so. */
  async soon<T>(promise: Promise<T>, what: string, withinMs = SOON_MS): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      const message = `${what}: nothing within ${Math.round(withinMs)} ms`;
      timer = setTimeout(() => reject(new ConformanceFailure(message)), withinMs);
    });
    promise.catch(() => {});
    try {
      return await Promise.race([promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms));
  }

  /** A signal that aborts after so long. */
  abortAfter(ms: number): AbortSignal {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(new Error("the caller gave up")), ms);
    this.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
    return controller.signal;
  }

  /** A stage of its own, for what must be over before the test is. */
  another(): Stage {
    return new Stage(this.#options);
  }

  /** After the test, whatever became of it. */
  async clear(): Promise<void> {
    await this.faults.heal();
    await Promise.all(this.#children.map((child) => child.kill()));
    await Promise.all(this.#elections.map((election) => election.close()));
    this.#over.abort(new Error("the test is over"));
    await Promise.all(this.#backends.map((backend) => backend[Symbol.asyncDispose]()));
  }
}
