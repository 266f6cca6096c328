/** A node that leads, as core sees it. */
import { untilAborted } from "../../kit/wait.js";
import type { CallOptions, Extension, Hold, ReleaseOptions, Session } from "../../seam/backend.js";
import type { Stop } from "../../seam/stop.js";
import type { Reading } from "../../seam/clock.js";
import type { CandidateNode } from "./candidate-node.js";
import { clearTheWay, type HandOver, removeNote } from "./clear-the-way.js";
import { ERRNO, isErrno } from "./client/errors.js";
import { encodeNode } from "./node-data.js";
import { PublishedValue } from "./published-value.js";
import type { SharedSession } from "./shared-session.js";

const ANY_VERSION = -1;

export class ZooKeeperHold implements Hold {
  readonly token: bigint;
  readonly asked: Reading;
  readonly ttlMs: number;
  readonly #node: CandidateNode;
  readonly #shared: SharedSession;
  readonly #attemptMs: number;
  readonly #handOver: HandOver;
  readonly #value: PublishedValue;

  constructor(handOver: HandOver, token: bigint, attemptMs: number) {
    const { node, shared } = handOver;
    this.#handOver = handOver;
    this.#value = new PublishedValue(handOver);
    this.#node = node;
    this.#shared = shared;
    this.#attemptMs = attemptMs;
    this.token = token;
    this.asked = shared.extension.asked;
    this.ttlMs = shared.ttlMs;
    shared.handedOut(node);
  }

  get session(): Session {
    return this.#shared;
  }

  get revoked(): Stop {
    return this.#node;
  }

  abandon(at: number): void {
    this.#shared.abandon(this.#node, at);
  }

  async renew({ signal }: CallOptions): Promise<Extension | "lost"> {
    if (this.#gone) return "lost";
    try {
      return this.#handOut(await untilAborted(signal, this.#shared.confirm(this.#node)));
    } catch (error) {
      if (this.#node.lost !== undefined) return "lost";
      throw error;
    }
  }

  /** The value is written, which proves that the node is there; the last extension of the session counts for it. */
  async proclaim(value: string, { signal }: CallOptions): Promise<Extension | "lost"> {
    if (this.#gone) return "lost";
    const { path, candidate } = this.#node;
    const limits = { signal, limitMs: this.#attemptMs };
    const connection = await this.#shared.connected(limits);
    if (this.#handOver.layout.valuesApart) {
      const outcome = await this.#value.write(connection, value, limits);
      if (outcome === "written") return this.#handOut(this.#shared.extension);
      if (outcome === "lost") return this.#losing();
    }
    try {
      await connection.setData(path!, encodeNode(candidate, value), ANY_VERSION, limits);
    } catch (error) {
      if (!isErrno(error, ERRNO.noNode)) throw error;
      return this.#losing();
    }
    return this.#handOut(this.#shared.extension);
  }

  async release({ signal, heir }: ReleaseOptions): Promise<void> {
    const limits = { signal, limitMs: this.#attemptMs };
    if (heir === undefined || this.#gone) return this.#shared.vacate(this.#node, signal, this.#attemptMs);
    const note = await clearTheWay(this.#handOver, heir, limits);
    // What stays names a node that is gone, so it does nothing but tell the heir.
    const noted = note === "kept" ? undefined : removeNote(this.#handOver, limits).catch(() => {});
    await this.#shared.vacate(this.#node, signal, this.#attemptMs);
    await noted;
  }

  #losing(): "lost" {
    this.#node.lose("its node was deleted");
    return "lost";
  }

  get #gone(): boolean {
    return this.#node.lost !== undefined || this.#node.state === "left";
  }

  #handOut(extension: Extension): Extension | "lost" {
    if (this.#gone) return "lost";
    this.#node.handedOut = extension.asked.now;
    return extension;
  }
}
