/** A few worker processes that take batches of seeds one after the other. */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Batch, BatchResult } from "./worker.js";

/** Stacks cost time and nobody reads them here; a larger nursery costs memory and saves collections. */
const NODE_FLAGS = ["--stack-trace-limit=0", "--max-semi-space-size=64"];

/** A batch takes a second or two. A worker that is silent for this long is stuck in a loop. */
const LONGEST_BATCH_MS = 120_000;

export class Worker {
  readonly #child: ChildProcess;

  constructor(script = fileURLToPath(new URL("./worker.js", import.meta.url))) {
    this.#child = fork(script, { execArgv: NODE_FLAGS });
  }

  run(batch: Batch): Promise<BatchResult> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => (): void => {
        clearTimeout(timer);
        this.#child.off("message", answered);
        this.#child.off("exit", died);
        settle();
      };
      const answered = (result: unknown): void => end(() => resolve(result as BatchResult))();
      const died = end(() =>
        reject(new Error(`a worker died on seeds ${batch.from}…${batch.from + batch.count - 1}`)),
      );
      const stuck = end(() =>
        reject(new Error(`a worker hangs on seeds ${batch.from}…${batch.from + batch.count - 1}`)),
      );
      const timer = setTimeout(stuck, LONGEST_BATCH_MS);
      this.#child.on("message", answered);
      this.#child.on("exit", died);
      this.#child.send(batch);
    });
  }

  stop(): void {
    this.#child.kill("SIGKILL");
  }
}
