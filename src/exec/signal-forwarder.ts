/**
 * Handles signals to the wrapper from its start: they are forwarded to the
 * command while one runs, and otherwise end the campaign.
 */
import { constants } from "node:os";

const PASSED_ON = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"] as const;
type Passed = (typeof PASSED_ON)[number];

/** These ask for an end. SIGHUP too, but to many programs it means "read your configuration again". */
const ENDING: ReadonlySet<string> = new Set(["SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP"]);

export class SignalForwarder implements Disposable {
  readonly #withdraw = new AbortController();
  readonly #handlers = new Map<NodeJS.Signals, () => void>();
  #target: ((signal: NodeJS.Signals) => void) | undefined;
  #last: Passed | undefined;
  #ending: Passed | undefined;

  constructor() {
    for (const signal of PASSED_ON) this.#on(signal, () => this.#take(signal));
    // A stopped wrapper could not renew and would lose leadership: Ctrl-Z does nothing.
    this.#on("SIGTSTP", () => {});
  }

  /** Aborts when a signal that asks for an end comes while no command runs. */
  get signal(): AbortSignal {
    return this.#withdraw.signal;
  }

  /** The signal that asked for an end, if one did. */
  get told(): NodeJS.Signals | undefined {
    return this.#ending;
  }

  /** The exit code that goes with the signal that asked for an end; `undefined` if none did. */
  get status(): number | undefined {
    return this.#ending === undefined ? undefined : 128 + constants.signals[this.#ending];
  }

  /** From now on signals go there. */
  attach(target: (signal: NodeJS.Signals) => void): void {
    this.#target = target;
  }

  /** The command has ended, by this signal if by any. */
  detach(by: NodeJS.Signals | null): void {
    this.#target = undefined;
    // A SIGHUP that the command died of was meant as an end.
    if (by === "SIGHUP" && this.#last === by) this.#end(by);
  }

  [Symbol.dispose](): void {
    for (const [signal, handler] of this.#handlers) process.off(signal, handler);
  }

  #take(signal: Passed): void {
    this.#last = signal;
    if (this.#target !== undefined) {
      if (ENDING.has(signal) && signal !== "SIGHUP") this.#ending ??= signal;
      this.#target(signal);
    } else if (ENDING.has(signal)) this.#end(signal);
  }

  #end(signal: Passed): void {
    this.#ending ??= signal;
    this.#withdraw.abort(new Error(`stopped by ${signal}`));
  }

  #on(signal: NodeJS.Signals, handler: () => void): void {
    this.#handlers.set(signal, handler);
    process.on(signal, handler);
  }
}
