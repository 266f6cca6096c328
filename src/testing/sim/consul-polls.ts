/** Blocking queries of the modelled Consul: answered at a change or after their time, sometimes never. */
import type { KeyRange, ReadAnswer } from "../../backends/consul/client.js";
import { ConclaveError } from "../../kit/errors.js";
import { StopSource } from "../../kit/stop.js";
import type { Stop } from "../../kit/stop.js";
import { onAbort } from "../../kit/wait.js";
import type { Link } from "./network.js";
import type { Scheduler } from "./scheduler.js";

/** What the store needs of the way to a process. */
export type ConsulLink = Pick<Link, "call" | "notify" | "coin"> & {
  readonly process: { readonly alive: boolean; readonly node: { readonly id: string } };
};

export type Timeline = Pick<Scheduler, "now" | "quietly">;

interface Poll {
  readonly link: ConsulLink;
  readonly range: KeyRange;
  readonly index: bigint;
  answer(answer: ReadAnswer): void;
  fail(error: Error): void;
}

export class ConsulPolls {
  readonly #scheduler: Timeline;
  readonly #read: (range: KeyRange) => ReadAnswer;
  /** Those that have reached the server. */
  readonly #polls = new Set<Poll>();
  /** All that are waited for. */
  readonly #asked = new Set<Poll>();

  constructor(scheduler: Timeline, read: (range: KeyRange) => ReadAnswer) {
    this.#scheduler = scheduler;
    this.#read = read;
  }

  poll(
    link: ConsulLink,
    range: KeyRange,
    since: { readonly index: bigint; readonly waitMs: number },
    signal: Stop,
  ): Promise<ReadAnswer> {
    return new Promise((resolve, reject) => {
      const asking = new StopSource();
      const over = (): void => {
        asking.stop();
        this.#polls.delete(poll);
        this.#asked.delete(poll);
        unlink();
      };
      const poll: Poll = {
        ...{ link, range, index: since.index },
        answer: (answer) => {
          over();
          resolve(answer);
        },
        fail: (error) => {
          over();
          reject(error);
        },
      };
      this.#asked.add(poll);
      const unlink = onAbort(signal, over);
      const arrive = (): void => {
        if (!this.#asked.has(poll)) return;
        this.#polls.add(poll);
        if (this.#isNews(poll)) return this.#tell(poll);
        this.#scheduler.quietly(this.#scheduler.now + since.waitMs, () => {
          if (this.#polls.has(poll)) this.#tell(poll);
        });
      };
      link.call("wait", arrive, asking).catch((error: unknown) => {
        if (this.#asked.has(poll)) poll.fail(error instanceof Error ? error : new Error(String(error)));
      });
    });
  }

  changed(key: string): void {
    for (const poll of [...this.#polls]) {
      const { range } = poll;
      if (("key" in range ? range.key === key : key.startsWith(range.prefix)) && this.#isNews(poll))
        this.#tell(poll);
    }
  }

  /** The store was restored: every question is answered at once, or its connection breaks. */
  abandon(): void {
    for (const poll of [...this.#polls]) this.#tell(poll);
  }

  /** The process gives up its connections. */
  cut(link: ConsulLink): void {
    for (const poll of [...this.#asked])
      if (poll.link === link) poll.fail(new ConclaveError("unavailable", "the connection is made anew"));
  }

  #isNews({ range, index }: Poll): boolean {
    return this.#read(range).index > index;
  }

  /** If the answer gets lost, half of those who wait notice. */
  #tell(poll: Poll): void {
    const { link, range } = poll;
    this.#polls.delete(poll);
    if (!link.process.alive) return;
    const answer = this.#read(range);
    if (link.notify(() => poll.answer(answer)) || link.coin()) return;
    link.notify(() => poll.fail(new ConclaveError("unavailable", "the connection was lost")));
  }
}
