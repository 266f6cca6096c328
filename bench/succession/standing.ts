/** Candidates of one election in this process, each with a connection of its own, which campaign again whenever a term has ended. */
import type { Election, OpenElectionOptions, Term } from "../../src/index.js";
import { openElection } from "../../src/index.js";

export interface Elected {
  readonly id: string;
  readonly term: Term;
  readonly at: number;
}

export class Standing {
  readonly #options: OpenElectionOptions;
  readonly #open = new Map<string, Election>();
  readonly #heard: ((elected: Elected) => void)[] = [];
  /** All that were elected, in their order. */
  readonly elected: Elected[] = [];

  constructor(options: OpenElectionOptions) {
    this.#options = options;
  }

  get ids(): string[] {
    return [...this.#open.keys()];
  }

  async join(id: string, more: Partial<OpenElectionOptions> = {}): Promise<void> {
    const election = await openElection({ ...this.#options, ...more, id });
    // Without a listener a warning of the process would say it; what came of it is in the figures.
    election.on("error", () => {});
    election.on("elected", ({ term }) => {
      const elected = { id, term, at: performance.now() };
      this.elected.push(elected);
      for (const heard of this.#heard.splice(0)) heard(elected);
    });
    this.#open.set(id, election);
    void this.#campaign(id, election);
  }

  /** The next one that is elected. */
  next(): Promise<Elected> {
    return new Promise((resolve) => this.#heard.push(resolve));
  }

  async leave(id: string): Promise<void> {
    const election = this.#open.get(id);
    this.#open.delete(id);
    await election?.close();
  }

  async close(): Promise<void> {
    await Promise.all(this.ids.map((id) => this.leave(id)));
  }

  async #campaign(id: string, election: Election): Promise<void> {
    while (this.#open.get(id) === election) {
      try {
        const term = await election.campaign();
        await new Promise<void>((resolve) => {
          if (term.signal.aborted) resolve();
          else term.signal.addEventListener("abort", () => resolve(), { once: true });
        });
        await term.resign(); // its owner's word that the work has stopped
      } catch {
        // Closed, or the store did not answer: the loop looks.
      }
    }
  }
}
