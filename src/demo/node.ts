/**
 * One candidate of the demo, in a process of its own: `conclave run` with one
 * difference, its work is to write to the director's ledger.
 */
import { fileBackend } from "../backends/file/index.js";
import { Election } from "../election/election.js";
import { StaleLeaderError } from "../kit/errors.js";
import type { Term } from "../api/term.js";
import { onAbort } from "../kit/wait.js";
import { Candidate } from "../terminal/candidate.js";
import { EXIT, UsageError } from "../terminal/failure.js";
import { preciseNow } from "../terminal/lines.js";
import { openLog } from "../terminal/log.js";
import { output } from "../terminal/output.js";
import { CuttableFileSystem } from "./faults.js";
import { isDirectorMessage } from "./wire.js";
import type { DirectorMessage, NodeMessage } from "./wire.js";

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
  const { name, id, ttlMs, retryMs, workEveryMs } = options;
  const fs = new CuttableFileSystem();
  const backend = fileBackend({ directory: options.lockDir, fs });
  const election = new Election({ name, id, backend, ttlMs, retryMs, closeBackend: true });
  const ledger = new LedgerClient(stop.signal);
  const work = (term: Term): Promise<void> => ledger.write(term);
  const log = openLog("json", output(), id, election.candidate);
  const candidate = new Candidate({ election, log, signal: stop.signal, workEveryMs, work });
  const unreport = report(election, fs);
  await candidate.run();
  unreport();
  if (process.connected) process.disconnect();
  return EXIT.ok;
}

const OPS_EVERY_MS = 1_000;

/** Tells the director what log lines do not say, and does what it asks. */
function report(election: Election, fs: CuttableFileSystem): () => void {
  const { marginMs } = election.timing;
  const lease = (term: Term): void => {
    const { token, remainingMs } = term;
    if (remainingMs > 0)
      send({ kind: "lease", at: preciseNow(), token: token.toString(), remainingMs, marginMs });
  };
  const obey = (message: unknown): void => {
    if (!isDirectorMessage(message)) return;
    if (message.kind === "resign") void election.resign();
    else if (message.kind === "cut") return message.on ? fs.cut() : fs.heal();
  };
  const offs = [
    election.on("elected", ({ term }) => lease(term)),
    election.on("renewal", ({ term, ok }) => void (ok && lease(term))),
  ];
  const counting = setInterval(() => send({ kind: "ops", count: fs.takeCalls() }), OPS_EVERY_MS);
  process.on("message", obey);
  return () => {
    clearInterval(counting);
    process.off("message", obey);
    for (const off of offs) off();
  };
}

function send(message: NodeMessage): void {
  // Fails only when the director is gone; then the disconnect says so.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
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
      if (message.kind !== "verdict") return;
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
      send({ kind: "write", id, token, late: false });
    });
  }

  #writeLate(): void {
    if (this.#last !== undefined) send({ kind: "write", id: ++this.#id, token: this.#last, late: true });
  }
}
