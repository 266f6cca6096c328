/** The bench's side of a candidate process. */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { machineMs } from "./protocol.js";
import type { EventName, Order, Report, ReportOf, Setup } from "./protocol.js";

function is<E extends EventName>(report: Report, event: E): report is ReportOf<E> {
  return report.event === event;
}

export class Contestant {
  readonly #process: ChildProcess;

  constructor(setup: Setup) {
    this.#process = fork(new URL("candidate.js", import.meta.url), [JSON.stringify(setup)]);
  }

  /** The next report of this kind from now on. */
  next<E extends EventName>(event: E): Promise<ReportOf<E>> {
    return new Promise((resolve) => {
      const listen = (report: Report): void => {
        if (!is(report, event)) return;
        this.#process.off("message", listen);
        resolve(report);
      };
      this.#process.on("message", listen);
    });
  }

  tell(order: Order): void {
    this.#process.send(order);
  }

  async stand(): Promise<void> {
    const elected = this.next("elected");
    this.tell("stand");
    await elected;
  }

  async wait(): Promise<void> {
    const standing = this.next("standing");
    this.tell("stand");
    await standing;
  }

  async usage(): Promise<ReportOf<"usage">> {
    const usage = this.next("usage");
    this.tell("usage");
    return usage;
  }

  /** Kills it; returns the instant just before. */
  async kill(): Promise<number> {
    const gone = new Promise((resolve) => this.#process.once("exit", resolve));
    const at = machineMs();
    this.#process.kill("SIGKILL");
    await gone;
    return at;
  }
}
