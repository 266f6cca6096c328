/**
 * One candidate of the demo, in a process of its own: `conclave run` with one
 * difference, its work is to write to the director's ledger.
 */
import { Election } from "../../core/election.js";
import { StaleLeaderError } from "../../core/errors.js";
import type { Term } from "../../core/term.js";
import { onAbort } from "../../core/waiting.js";
import { Candidate } from "../candidate.js";
import { EXIT, UsageError } from "../failure.js";
import { openLog } from "../log.js";
import { output } from "../output.js";
import { openStore } from "../store.js";
import { isDirectorMessage } from "./wire.js";
import type { DirectorMessage, WriteRequest } from "./wire.js";

export interface NodeOptions {
  readonly name: string;
  readonly id: string;
  readonly lockDir: string;
  readonly ttlMs: number;
  readonly retryMs: number;
  readonly workEveryMs: number;
}

export async function demoNode(options: NodeOptions): Promise<number> {
  if (process.send === undefined)
    throw new UsageError("demo-node is started by `conclave demo`, not by hand");
  const stop = new AbortController();
  // Ctrl-C in the terminal reaches every process; what happens then is for the director to say.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => stop.abort());
  // Without a director there is no demo.
  process.on("disconnect", () => stop.abort());
  if (!process.connected) stop.abort(); // it went while this process was still starting
  const { backend } = await openStore({ lockDir: options.lockDir });
  const { name, id, ttlMs, retryMs, workEveryMs } = options;
  const election = new Election({ name, id, backend, ttlMs, retryMs, closeBackend: true });
  const ledger = new LedgerClient(stop.signal);
  const perform = (term: Term): Promise<void> => ledger.write(term);
  const log = openLog("json", output(), id, election.candidate);
  const candidate = new Candidate({ election, log, signal: stop.signal, workEveryMs, perform });
  await candidate.run();
  if (process.connected) process.disconnect();
  return EXIT.ok;
}

class LedgerClient {
  readonly #signal: AbortSignal;
  readonly #waiting = new Map<number, (message: DirectorMessage & { kind: "verdict" }) => void>();
  #last: string | undefined;
  #id = 0;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    process.on("message", (message: unknown) => {
      if (!isDirectorMessage(message)) return;
      if (message.kind === "write-late") return this.#writeLate();
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
    });
  }

  /** Writes under a term. Rejects if a newer leader has written before. */
  async write(term: Term): Promise<void> {
    const token = term.token.toString();
    this.#last = token;
    const verdict = await this.#ask(token, term.signal);
    if (verdict !== undefined && !verdict.accepted)
      throw new StaleLeaderError(term.token, BigInt(verdict.highest));
  }

  /** `undefined`: told to stop before the answer came. */
  #ask(token: string, signal: AbortSignal): Promise<(DirectorMessage & { kind: "verdict" }) | undefined> {
    const id = ++this.#id;
    return new Promise((resolve) => {
      const unlinks = [signal, this.#signal].map((source) => onAbort(source, () => resolve(undefined)));
      this.#waiting.set(id, (verdict) => {
        for (const unlink of unlinks) unlink();
        resolve(verdict);
      });
      this.#send({ kind: "write", id, token, late: false });
    });
  }

  #writeLate(): void {
    if (this.#last !== undefined)
      this.#send({ kind: "write", id: ++this.#id, token: this.#last, late: true });
  }

  #send(request: WriteRequest): void {
    // Fails only when the director is gone; then the disconnect says so.
    if (process.connected) process.send?.(request, undefined, undefined, () => {});
  }
}
