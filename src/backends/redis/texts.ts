/** Texts by compare-and-swap: one HASH each, written and read by a script. */
import type { CallOptions } from "../../seam/backend.js";
import type { Entry } from "../../seam/table.js";
import type { Clock } from "../../seam/clock.js";
import { ConclaveError } from "../../kit/errors.js";
import type { Connection } from "./connection.js";
import { READ, REMOVE, WRITE } from "./scripts.js";
import type { Subscriber } from "./subscriber.js";

/** How a text is written. */
export interface Writing {
  /** Of the lease that begins with this write. */
  readonly ttlMs?: number | undefined;
  /** Whether the lease passes to another holder by it. */
  readonly takesOver?: boolean;
  readonly quarantine?: boolean;
  /** Key of the server's epoch; absent in a cluster. */
  readonly epoch?: string | undefined;
}

/** What came of it. `quarantineMs`: refused, and for how long it will be. */
export type Written =
  | { readonly kind: "written"; readonly version: bigint; readonly told: boolean }
  | { readonly kind: "not-current" }
  | { readonly kind: "quarantine"; readonly waitMs: number };

export class Texts {
  readonly #connection: Connection;
  readonly #subscriber: Subscriber;
  readonly #writer: string;
  #writes = 0;

  constructor(connection: Connection, subscriber: Subscriber, clock: Clock) {
    this.#connection = connection;
    this.#subscriber = subscriber;
    this.#writer = clock.uniqueId();
  }

  async read(key: string, what: string, { signal }: CallOptions): Promise<Entry | null> {
    const answer = await this.#connection.run(READ, [key], [], { what, signal });
    if (answer === null || answer === undefined) return null;
    const [version, record, left] = texts(answer, what);
    return {
      version: number(version, what),
      record: record ?? "",
      current: true,
      ...(left !== undefined && left !== "" && { expiresInMs: Number(number(left, what)) }),
    };
  }

  async write(
    key: string,
    expected: bigint | null,
    text: string,
    writing: Writing,
    call: CallOptions & { readonly what: string },
  ): Promise<Written> {
    const { ttlMs, takesOver = false, quarantine = false, epoch } = writing;
    const id = `${this.#writer}.${++this.#writes}`;
    const keys = quarantine && epoch !== undefined ? [key, epoch] : [key];
    const ttl = ttlMs === undefined ? "" : String(Math.ceil(ttlMs));
    const args = [
      expected?.toString() ?? "",
      text,
      ttl,
      this.#channel(key),
      id,
      flag(takesOver),
      flag(quarantine),
    ];
    const answer = await this.#connection.run(WRITE, keys, args, call);
    if (answer === null || answer === undefined) return { kind: "not-current" };
    const [kind, value, told] = texts(answer, call.what);
    if (kind === "wait") return { kind: "quarantine", waitMs: Number(number(value, call.what)) };
    return { kind: "written", version: number(value, call.what), told: told === "1" };
  }

  /** Whether it was removed: only this version, and only if those after it are higher for certain. */
  async remove(
    key: string,
    expected: bigint,
    call: CallOptions & { readonly what: string },
  ): Promise<boolean> {
    return Number(await this.#connection.run(REMOVE, [key], [expected.toString()], call)) === 1;
  }

  /** `wake` gets the entry that was written, if the message holds one. */
  watch(key: string, wake: (entry?: Entry) => void, { signal }: CallOptions): Promise<void> {
    return this.#subscriber.hear(
      this.#channel(key),
      (text) => wake(pushed(text)),
      () => wake(),
      signal,
    );
  }

  /** Messages know neither prefixes of clients nor databases: the channel names both. */
  #channel(key: string): string {
    const { keyPrefix, database } = this.#connection.driver;
    return database === 0 ? `${keyPrefix}${key}` : `${keyPrefix}${key}@${database}`;
  }
}

/** `<version> <ttl, or nothing> <text>`. The lease is as old as the message: what is left of it counts too long, never too short. */
function pushed(message: string): Entry | undefined {
  const match = /^(\d{1,20}) (\d{0,12}) /.exec(message);
  if (match === null) return undefined;
  const [head, version = "", ttl = ""] = match;
  return {
    version: BigInt(version),
    record: message.slice(head.length),
    ...(ttl !== "" && { expiresInMs: Number(ttl) }),
  };
}

function flag(value: boolean): string {
  return value ? "1" : "0";
}

/** Clients may be set to hand out Buffers. */
function texts(answer: unknown, what: string): (string | undefined)[] {
  if (!Array.isArray(answer)) throw odd(what);
  return answer.map((item: unknown) => {
    if (typeof item === "string") return item;
    return item instanceof Uint8Array ? Buffer.from(item).toString("utf8") : undefined;
  });
}

function number(text: string | undefined, what: string): bigint {
  if (text === undefined || !/^-?\d{1,20}$/.test(text)) throw odd(what);
  return BigInt(text);
}

function odd(what: string): ConclaveError {
  return new ConclaveError(
    "conflict",
    `${what}: the key holds something that this library did not write; it was left alone: use another prefix, or delete it if nobody needs it`,
  );
}
