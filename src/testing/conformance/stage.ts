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
} from "../../seam/backend.js";
import { systemClock } from "../../kit/clock.js";
import { Election } from "../../election/election.js";
import type { ElectionOptions } from "../../api/options.js";
import { ConformanceFailure, check, present, show } from "./check.js";
import { Child } from "./child.js";
import { CleanUp } from "./clean-up.js";
import { DateJump } from "./dates.js";
import type { Faults } from "./faults.js";
import { Follower } from "./follower.js";
import type { ConformanceOptions } from "./options.js";
import { printer } from "./print.js";

/** "Soon", on a machine that is busy with other things. */
const PATIENCE_MS = 10_000;
const RETRY_MS = 100;
const ATTEMPT_MS = 5_000;
/** A read may lag behind: what it must show at last, it must show within this time. */
const STALE_MS = 3_000;
const LOOK_AGAIN_MS = 50;

export class Stage {
  readonly rounds: number;
  /** How long is waited for what must happen soon. */
  readonly soonMs: number;
  readonly #options: ConformanceOptions;
  readonly #backends: Backend[] = [];
  readonly #elections: Election[] = [];
  readonly #children: Child[] = [];
  readonly #over = new AbortController();
  readonly #date = new DateJump();

  constructor(options: ConformanceOptions) {
    this.#options = options;
    this.rounds = options.rounds ?? 20;
    this.soonMs = options.patienceMs ?? PATIENCE_MS;
    setMaxListeners(0, this.#over.signal); // many calls of one test share it
  }

  /** Whether a test, by its group and name, is skipped for this backend. */
  skips(group: string, name: string): boolean {
    return (this.#options.skips ?? []).some(({ test }) => test === group || test === `${group}: ${name}`);
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
      deafen: (start) => (faults?.deafen ?? missing).call(faults, start),
      slow: (delayMs) => (faults?.slow ?? missing).call(faults, delayMs),
      blackHole: () => (faults?.blackHole ?? missing).call(faults),
      forget: () => (faults?.forget ?? missing).call(faults),
      step: (ms) => (faults?.step ?? missing).call(faults, ms),
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
      ...{ retryMs: RETRY_MS, attemptMs: ATTEMPT_MS },
      ...changes,
    };
  }

  /** Campaigns. `changes` may fix the candidate, the ttl, the signal, … */
  campaign(
    backend: Backend,
    election: string,
    changes: Partial<Candidacy & CampaignOptions> = {},
  ): Promise<Hold | null> {
    const { wait = true, signal = this.signal, ...rest } = changes;
    return backend.campaign(this.candidacy(backend, election, rest), { wait, signal });
  }

  /** Campaigns, and must win soon. */
  async win(
    backend: Backend,
    election: string,
    changes: Partial<Candidacy & CampaignOptions> = {},
  ): Promise<Hold> {
    const hold = await this.soon(
      this.campaign(backend, election, changes),
      `campaigning in ${election} must succeed`,
      this.soonMs + 2 * (changes.ttlMs ?? this.ttlMs(backend)),
    );
    return present(hold, `campaigning in ${election} must give a hold`);
  }

  /** Campaigns after a fault, and must win soon; until then a connection that broke may fail a few attempts. */
  async winAgain(
    backend: Backend,
    election: string,
    changes: Partial<Candidacy & CampaignOptions>,
    what: string,
  ): Promise<Hold> {
    const until = this.now() + this.soonMs;
    for (;;) {
      try {
        const hold = await this.soon(this.campaign(backend, election, changes), what);
        return present(hold, what);
      } catch (error) {
        if (error instanceof ConformanceFailure || this.now() > until) throw error;
        await this.pause(RETRY_MS);
      }
    }
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

  /** Releases what may be released already. If a read that lags keeps it from knowing, it may say so for a moment. */
  async releaseAgain(hold: Hold): Promise<void> {
    await this.eventually(
      () =>
        this.release(hold).then(
          () => "released",
          (error: unknown) => show(error),
        ),
      (answer) => answer === "released",
      "releasing twice must succeed",
    );
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

  /** Who leads must be this, at once or as soon as a read that lags has caught up. */
  async leaderIs(
    backend: Backend,
    election: string,
    wanted: Partial<Leader> | null,
    what: string,
  ): Promise<void> {
    const fits = (leader: Leader | null): boolean =>
      wanted === null || leader === null
        ? leader === wanted
        : Object.entries(wanted).every(([field, value]) => Reflect.get(leader, field) === value);
    await this.eventually(() => this.leader(backend, election), fits, `${what}: expected ${show(wanted)}`);
  }

  /** Asks again until the answer is the wanted one, for as long as a read may lag behind. */
  async eventually<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean, what: string): Promise<T> {
    const until = this.now() + STALE_MS;
    for (;;) {
      const answer = await ask();
      if (wanted(answer)) return answer;
      check(this.now() < until, `${what}, got ${show(answer)}`);
      await this.pause(LOOK_AGAIN_MS);
    }
  }

  /** For what costs time and breaks no promise: printed, not failed. */
  warn(message: string): void {
    printer(this.#options)(`warning: ${message}`);
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

  /** Waits, but not forever: what does not come in time is a failure that says so. */
  async soon<T>(promise: Promise<T>, what: string, withinMs = this.soonMs): Promise<T> {
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

  /** Sets the date of this process, until the test is over. */
  jumpDate(ms: number): void {
    this.#date.jump(ms);
  }

  /** A stage of its own, for what must be over before the test is. */
  another(): Stage {
    return new Stage(this.#options);
  }

  /** After the test, whatever became of it. Says what could not be cleaned up. */
  async clear(): Promise<readonly string[]> {
    const cleanUp = new CleanUp(2 * this.soonMs);
    this.#date.end();
    await cleanUp.step("healing the faults", () => this.faults.heal());
    const all = <T>(
      what: string,
      items: readonly T[],
      end: (item: T) => PromiseLike<unknown>,
    ): Promise<void> => cleanUp.all(what, items, end);
    await all("killing a child process", this.#children, (child) => child.kill());
    await all("closing an election", this.#elections, (election) => election.close());
    this.#over.abort(new Error("the test is over"));
    await all("closing a backend", this.#backends, (backend) => backend[Symbol.asyncDispose]());
    return cleanUp.problems;
  }
}
