/**
 * What the server says about itself, asked once, before the first write: whether
 * it is part of a cluster, and settings under which it can lose leases. Those are
 * warned of, once, and change nothing else.
 */
import type { Clock } from "../../seam/clock.js";
import { isConclaveError } from "../../kit/errors.js";
import { StopSource } from "../../kit/stop.js";
import { bounded, untilAborted } from "../../kit/wait.js";
import { Warnings } from "../../kit/warnings.js";
import type { Connection } from "./connection.js";

const LIMIT_MS = 5_000;

type Info = ReadonlyMap<string, string>;

export class ServerChecks {
  readonly warnings = new Warnings();
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #closed = new StopSource();
  #cluster: Promise<boolean> | undefined;

  constructor(connection: Connection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
  }

  /** Whether keys of one script must share a slot. A server that does not tell is believed to be what its client is for. */
  inCluster(signal: AbortSignal): Promise<boolean> {
    const { driver } = this.#connection;
    // Many may wait for the one answer: it has a limit of its own, whoever asked first.
    this.#cluster ??= bounded(this.#clock, LIMIT_MS, this.#closed, "asking Redis about itself", (stop) =>
      this.#ask(stop),
    ).catch((error: unknown) => {
      if (isConclaveError(error) && error.code === "forbidden") return driver.cluster;
      this.#cluster = undefined;
      throw error;
    });
    return untilAborted(signal, this.#cluster);
  }

  close(): void {
    this.#closed.stop(new Error("the Redis backend is closed"));
  }

  warnUntold(): void {
    this.warnings.add(
      "this Redis server does not tell its replication id (INFO in scripts): after a restart or failover that lost " +
        "writes, a second leader can be elected while the first still acts. Allow INFO, or fence what must not be done twice",
    );
  }

  async #ask(signal: AbortSignal): Promise<boolean> {
    const call = { what: "asking Redis about itself", signal };
    const info = parseInfo(await this.#connection.command(["INFO"], call));
    this.#warn(info);
    // Forbidden on many managed services: then nothing is known, and nothing said.
    void Promise.all([this.#setting("min-replicas-to-write", signal), this.#setting("save", signal)]).then(
      ([replicas, save]) => this.#warnOfSettings(info, replicas, save),
    );
    return this.#connection.driver.cluster || info.get("cluster_enabled") === "1";
  }

  #warn(info: Info): void {
    const policy = info.get("maxmemory_policy") ?? "";
    if (policy.startsWith("allkeys-") && info.get("maxmemory") !== "0")
      this.warnings.add(
        `this Redis server evicts any key when its memory is full (maxmemory-policy ${policy}), elections too: use noeviction or volatile-*`,
      );
  }

  #warnOfSettings(info: Info, replicas: string | undefined, save: string | undefined): void {
    if (save === "" && info.get("aof_enabled") === "0")
      this.warnings.add(
        "this Redis server keeps nothing on disk: after a restart it has forgotten who leads, and nobody is elected " +
          "until it has been up for a ttl. Switch persistence on (appendonly yes)",
      );
    if (replicas === "0" && Number(info.get("connected_slaves")) > 0)
      this.warnings.add(
        "this Redis primary accepts writes without its replicas (min-replicas-to-write 0): cut off from them it goes on " +
          "granting leadership while a promoted replica does too. Set min-replicas-to-write 1 and min-replicas-max-lag 10",
      );
  }

  async #setting(name: string, signal: AbortSignal): Promise<string | undefined> {
    try {
      const answer = await this.#connection.command(["CONFIG", "GET", name], {
        what: "asking for a setting",
        signal,
      });
      // RESP3 clients may make an object or a map of it.
      if (Array.isArray(answer)) return answer.length >= 2 ? String(answer[1]) : undefined;
      if (answer instanceof Map) return String(answer.get(name));
      const value: unknown =
        typeof answer === "object" && answer !== null ? Reflect.get(answer, name) : undefined;
      return typeof value === "string" ? value : undefined;
    } catch {
      return undefined;
    }
  }
}

export function parseInfo(answer: unknown): Info {
  const lines = String(answer).split(/\r?\n/);
  return new Map(
    lines.flatMap((line) => {
      const at = line.indexOf(":");
      return at > 0 ? [[line.slice(0, at), line.slice(at + 1)] as const] : [];
    }),
  );
}
