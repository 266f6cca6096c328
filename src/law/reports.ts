/** What an election tells: events for programs, log lines for people. */
import type { ElectionEvents, Logger } from "../api/events.js";
import { Emitter } from "../kit/emitter.js";
import { describe } from "../kit/errors.js";
import { writeLog } from "../kit/log.js";
import type { LogEntry } from "../kit/log.js";
import { sayUnheard } from "../kit/unheard.js";

export class Reports extends Emitter<ElectionEvents> {
  readonly #election: string;
  readonly #candidate: string;
  readonly #logger: Logger | undefined;
  readonly #backend: string | undefined;
  /** Of the present term: log lines have it among their fields. */
  token: bigint | undefined;

  constructor(election: string, candidate: string, logger: Logger | undefined, backend?: string) {
    super();
    this.#election = election;
    this.#candidate = candidate;
    this.#logger = logger;
    this.#backend = backend;
  }

  /** Whether there is a logger. */
  get logs(): boolean {
    return this.#logger !== undefined;
  }

  log(level: keyof Logger, message: string, thrown: Pick<LogEntry, "error" | "showStack"> = {}): void {
    if (this.#logger === undefined) return;
    const [election, candidate, backend] = [this.#election, this.#candidate, this.#backend];
    const token = this.token === undefined ? {} : { token: this.token.toString() };
    const fields = { election, candidate, backend, ...token };
    writeLog(this.#logger, { level, message: `election "${election}": ${message}`, fields, ...thrown });
  }

  /** An error, to the log and to listeners; if there is neither, to stderr, once. `own`: the user's code threw it. */
  fail(level: keyof Logger, message: string, error: unknown, own: boolean): void {
    this.log(level, message, { error, showStack: own });
    if (!this.logs && !this.hears("error"))
      sayUnheard(`election "${this.#election}"`, message, 'pass a logger, or listen to "error",');
    this.emit("error", { error });
  }

  protected get prefix(): string {
    return "conclave:";
  }

  protected get source(): object {
    return { election: this.#election, candidate: this.#candidate };
  }

  protected threw(error: unknown): void {
    this.log("error", `a listener threw: ${describe(error)}`, { error, showStack: true });
  }
}
