/** Candidates of one election, each on a backend of its own: who leads, in which order, and never two at once. */
import { systemClock } from "../../kit/clock.js";
import type { Backend, Candidacy, Heir, Hold } from "../../seam/backend.js";
import { ConformanceFailure, check } from "./check.js";
import type { Stage } from "./stage.js";

/** A backend need not say what a waiting candidate meets: then it is taken to wait after so long. */
const MEETS_MS = 1_000;
const LONG_MS = 60_000;
const AGAIN_MS = 50;

export class LineUp {
  readonly election: string;
  /** In the order in which they led. */
  readonly terms: { readonly id: string; readonly token: bigint }[] = [];
  readonly stage: Stage;
  #holder: string | undefined;
  #wrong: ConformanceFailure | undefined;
  #news: (() => void)[] = [];

  constructor(stage: Stage) {
    this.stage = stage;
    this.election = stage.name();
  }

  /** One more candidate, that waits behind those before it, or leads if it is the first. */
  async join(id: string, options: Partial<Candidacy> = {}): Promise<Standing> {
    const standing = new Standing(this, await this.stage.open(), id, options);
    await standing.campaign();
    return standing;
  }

  async joinAll(ids: readonly string[]): Promise<Standing[]> {
    const all: Standing[] = [];
    for (const id of ids) all.push(await this.join(id));
    return all;
  }

  get ids(): readonly string[] {
    return this.terms.map(({ id }) => id);
  }

  /** Waits until so many terms have begun. */
  async count(count: number, what: string, withinMs = this.stage.soonMs): Promise<void> {
    const begun = async (): Promise<void> => {
      while (this.terms.length < count && this.#wrong === undefined)
        await new Promise<void>((resolve) => this.#news.push(resolve));
    };
    await this.stage.soon(begun(), `${what}; led so far: ${this.ids.join(", ")}`, withinMs);
    if (this.#wrong !== undefined) throw this.#wrong;
  }

  /** Told by the candidates. */
  led(id: string, token: bigint): void {
    const before = this.terms.at(-1);
    this.#claim(this.#holder === undefined, `${id} leads while ${this.#holder} does`);
    this.#claim(
      before === undefined || token > before.token,
      `${id} was granted token ${token} after ${before?.token}`,
    );
    this.#holder = id;
    this.terms.push({ id, token });
    this.#tell();
  }

  left(): void {
    this.#holder = undefined;
  }

  #claim(holds: boolean, what: string): void {
    if (!holds) this.#wrong ??= new ConformanceFailure(what);
  }

  #tell(): void {
    const waiting = this.#news;
    this.#news = [];
    for (const resolve of waiting) resolve();
  }
}

export class Standing {
  readonly id: string;
  readonly backend: Backend;
  readonly candidate: string;
  readonly #lineUp: LineUp;
  readonly #options: Partial<Candidacy>;
  #hold: Promise<Hold> | undefined;

  constructor(lineUp: LineUp, backend: Backend, id: string, options: Partial<Candidacy>) {
    this.#lineUp = lineUp;
    this.backend = backend;
    this.id = id;
    this.candidate = `${id}-${systemClock.uniqueId()}`;
    this.#options = options;
  }

  /** Until it leads, or has met somebody who does. */
  async campaign(): Promise<void> {
    const { stage } = this.#lineUp;
    const met = new Promise<void>((resolve) => {
      this.#hold = this.#lead(resolve);
      this.#hold.then(() => resolve()).catch(() => {}); // said when it is asked for, or by who is waited for
    });
    await Promise.race([met, stage.pause(MEETS_MS)]);
  }

  async leads(): Promise<Hold> {
    check(this.#hold !== undefined, `${this.id} does not campaign`);
    return this.#lineUp.stage.soon(this.#hold, `${this.id} must lead`);
  }

  /** Gives leadership back, to this heir if there is one. */
  async resign(heir?: Heir): Promise<void> {
    const hold = await this.leads();
    const { stage } = this.#lineUp;
    this.#lineUp.left();
    await stage.soon(hold.release({ ...stage.call(), heir }), "releasing must be answered");
  }

  /** A campaign that throws does not know: it campaigns again, as the library does. */
  async #lead(met: () => void): Promise<Hold> {
    const { stage, election } = this.#lineUp;
    const candidacy = stage.candidacy(this.backend, election, {
      ...{ candidate: this.candidate, value: this.id, ttlMs: stage.ttlMs(this.backend, LONG_MS) },
      ...this.#options,
    });
    for (;;) {
      try {
        const hold = await this.backend.campaign(candidacy, { wait: true, ...stage.call(), seen: met });
        check(hold !== null, "a waiting campaign must end with a hold");
        this.#lineUp.led(this.id, hold.token);
        return hold;
      } catch (error) {
        if (error instanceof ConformanceFailure || stage.signal.aborted) throw error;
        await stage.pause(AGAIN_MS);
      }
    }
  }
}
