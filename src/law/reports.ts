/** What an election tells: events for programs, log lines for people. */
import type { ElectionEvents, Logger } from "../api/events.js";
import { Emitter } from "../kit/emitter.js";
import { describe } from "../kit/errors.js";
import { printable } from "../kit/printable.js";

export class Reports extends Emitter<ElectionEvents> {
  readonly #election: string;
  readonly #candidate: string;
  readonly #logger: Logger | undefined;

  constructor(election: string, candidate: string, logger: Logger | undefined) {
    super();
    this.#election = election;
    this.#candidate = candidate;
    this.#logger = logger;
  }

  log(level: keyof Logger, message: string): void {
    try {
      this.#logger?.[level](printable(`election "${this.#election}": ${message}`));
    } catch {
      // A logger that throws must not end a term.
    }
  }

  protected get prefix(): string {
    return "conclave:";
  }

  protected get source(): object {
    return { election: this.#election, candidate: this.#candidate };
  }

  protected threw(error: unknown): void {
    this.log("error", `a listener threw: ${describe(error)}`);
  }
}
