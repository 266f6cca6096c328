/**
 * The watch over whoever stands before us. It begins when the server takes it
 * up, not where our last look was: so etcd tells at once what happens, even to
 * those who have only just come. That it stands is a reason to look again, for
 * whatever happened before.
 */
import type { Stop } from "../../kit/stop.js";
import type { EtcdClient, KeyValue } from "./client.js";
import type { Seat } from "./seat.js";

export class Vigil {
  readonly #client: EtcdClient;
  readonly #seat: Seat;
  readonly #signal: Stop;
  /** Create revision of the key that is watched. */
  #over: bigint | undefined;
  #unwatch = (): void => {};

  constructor(client: EtcdClient, seat: Seat, signal: Stop) {
    this.#client = client;
    this.#seat = seat;
    this.#signal = signal;
  }

  /** Waits for a change of this key, or for anything else that rings the seat's bell. */
  keep(ahead: KeyValue): Promise<void> {
    if (this.#over !== ahead.createRevision) this.#begin(ahead);
    return this.#seat.rung(this.#signal);
  }

  #begin({ key, createRevision }: KeyValue): void {
    const seat = this.#seat;
    this.end();
    this.#over = createRevision;
    seat.predecessor = { key, createRevision };
    this.#unwatch = this.#client.watch({ key, skip: "puts" }, (notice) => {
      if (notice.kind === "failed") return seat.refuse(notice.error);
      if (notice.kind === "compacted") this.#over = undefined; // it is at its end
      seat.ring(); // stands, deleted or compacted: look again
    });
  }

  /** For after the look that a wake brought about: until then the office is empty. */
  end(): void {
    this.#unwatch();
    this.#unwatch = () => {};
    this.#over = undefined;
    this.#seat.predecessor = undefined;
  }
}
