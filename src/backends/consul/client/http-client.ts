/** Consul's HTTP API, as far as elections need it. What the agent answers is checked before it is believed. */
import { readFile } from "node:fs/promises";
import { systemClock } from "../../../kit/clock.js";
import { ConclaveError, describe } from "../../../kit/errors.js";
import { maskSecrets } from "../../../kit/secrets.js";
import { limited } from "../../../kit/wait.js";
import type { Clock } from "../../../seam/clock.js";
import type {
  CallLimits,
  ConsulClient,
  HeldLock,
  KeyValue,
  Operation,
  ReadAnswer,
  ReadRequest,
  SessionRequest,
  TransactionAnswer,
} from "../client.js";
import { failure, isForbidden, nonsense } from "./errors.js";
import { parseExact, property, unsigned } from "./json.js";
import type { ConsulResponse, Transport } from "./transport.js";
import { checkAnswer, checkBody, transactionAnswer, transactionBody } from "./transaction.js";

export interface HttpClientOptions {
  readonly transport: Transport;
  /** The ACL token, or the file it is in, which is read for every request: it may be renewed. */
  readonly token?: string | undefined;
  readonly tokenFile?: string | undefined;
  /** `user:password`, for a proxy before Consul. */
  readonly basicAuth?: string | undefined;
  /** `dc`, `ns`, `partition`, as far as they are set. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly clock?: Clock | undefined;
}

interface Call {
  readonly method: "GET" | "PUT";
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly long?: boolean;
  /** For messages. */
  readonly what: string;
}

const SESSION_ID = /^[0-9a-f-]{36}$/i;

export class HttpConsulClient implements ConsulClient {
  readonly #options: HttpClientOptions;
  readonly #clock: Clock;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  async createSession(
    { name, ttlSeconds, lockDelayMs }: SessionRequest,
    limits: CallLimits,
  ): Promise<string> {
    const what = "creating a session";
    const body = JSON.stringify({
      ...{ Name: name, TTL: `${ttlSeconds}s`, LockDelay: `${lockDelayMs}ms`, Behavior: "release" },
      // No health check ends it. Servers before 1.7 know the first name only.
      ...{ Checks: [], NodeChecks: [], ServiceChecks: [] },
    });
    const answer = await this.#call({ method: "PUT", path: "/v1/session/create", body, what }, limits);
    if (answer.status !== 200) throw failure(what, answer.status, answer.text);
    const id = property(parsed(what, answer.text), "ID");
    if (typeof id !== "string" || !SESSION_ID.test(id)) throw nonsense(what, "it has no session id");
    return id;
  }

  async renewSession(id: string, limits: CallLimits): Promise<boolean> {
    const what = "renewing the session";
    const { status, text } = await this.#call(
      { method: "PUT", path: `/v1/session/renew/${encodeURIComponent(id)}`, what },
      limits,
    );
    // Anything may answer 404; Consul says what was not found.
    if (status === 404 && text.includes(id)) return false;
    if (status !== 200) throw failure(what, status, text);
    if (!namesSession(parsed(what, text), id)) throw nonsense(what, "it is about another session");
    return true;
  }

  async hasSession(id: string, limits: CallLimits): Promise<boolean> {
    const what = "looking for the session";
    const { status, text } = await this.#call(
      { method: "GET", path: `/v1/session/info/${encodeURIComponent(id)}`, query: { consistent: "" }, what },
      limits,
    );
    if (status !== 200) throw failure(what, status, text);
    const found = parsed(what, text);
    if (found !== null && !Array.isArray(found)) throw nonsense(what, "it is no list");
    return namesSession(found, id);
  }

  async destroySession(id: string, limits: CallLimits): Promise<void> {
    const what = "destroying the session";
    const { status, text } = await this.#call(
      { method: "PUT", path: `/v1/session/destroy/${encodeURIComponent(id)}`, what },
      limits,
    );
    if (status !== 200) throw failure(what, status, text);
  }

  async transaction(operations: readonly Operation[], limits: CallLimits): Promise<TransactionAnswer> {
    const what = "a transaction";
    const body = transactionBody(operations);
    const { status, text } = await this.#call({ method: "PUT", path: "/v1/txn", body, what }, limits);
    if (status !== 200 && status !== 409) throw failure(what, status, text);
    return transactionAnswer(what, status, parsed(what, text), operations);
  }

  async holds(locks: readonly HeldLock[], limits: CallLimits): Promise<boolean> {
    const what = "looking at locks";
    const body = checkBody(locks);
    const call = { method: "PUT", path: "/v1/txn", query: { consistent: "" }, body, what } as const;
    const { status, text } = await this.#call(call, limits);
    if (status !== 200 && status !== 409) throw failure(what, status, text);
    return checkAnswer(what, status, parsed(what, text), locks.length);
  }

  async read({ range, since }: ReadRequest, limits: CallLimits): Promise<ReadAnswer> {
    const recurse = "prefix" in range;
    const name = recurse ? range.prefix : range.key;
    const what = since === undefined ? "reading a key" : "waiting for a change";
    const query = {
      consistent: "",
      ...(recurse && { recurse: "" }),
      ...(since !== undefined && { index: String(since.index), wait: `${Math.ceil(since.waitMs)}ms` }),
    };
    const call = { method: "GET", path: `/v1/kv/${encodeKey(name)}`, query, what } as const;
    const { status, headers, text } = await this.#call({ ...call, long: since !== undefined }, limits);
    const index = unsigned(headers["x-consul-index"]);
    if (status !== 200 && (status !== 404 || index === undefined)) throw failure(what, status, text);
    if (index === undefined) throw nonsense(what, "it has no index");
    if (status === 404) return { index, kvs: [] };
    const found = parsed(what, text);
    if (!Array.isArray(found)) throw nonsense(what, "it is no list");
    const kvs = found.map((item: unknown) => keyValue(what, item));
    const asked = (kv: KeyValue): boolean => (recurse ? kv.key.startsWith(name) : kv.key === name);
    if (!kvs.every(asked) || (!recurse && kvs.length !== 1)) throw nonsense(what, "it is about other keys");
    return { index, kvs };
  }

  async keys(prefix: string, limits: CallLimits): Promise<readonly string[]> {
    const what = "listing keys";
    const { status, headers, text } = await this.#call(
      { method: "GET", path: `/v1/kv/${encodeKey(prefix)}`, query: { consistent: "", keys: "" }, what },
      limits,
    );
    if (status === 404 && headers["x-consul-index"] !== undefined) return [];
    if (status !== 200) throw failure(what, status, text);
    const found = parsed(what, text);
    if (!Array.isArray(found)) throw nonsense(what, "it is no list");
    return found.filter((key: unknown) => typeof key === "string" && key.startsWith(prefix));
  }

  distrust(): void {
    this.#options.transport.distrust();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#options.transport.close();
  }

  #call(call: Call, { limitMs, signal }: CallLimits): Promise<ConsulResponse> {
    return limited(this.#clock, limitMs, signal, `${call.what} on Consul`, async (stop) => {
      const { basicAuth, transport, parameters } = this.#options;
      const token = await this.#token();
      const query = Object.entries({ ...parameters, ...call.query })
        .map(([name, value]) => (value === "" ? name : `${name}=${encodeURIComponent(value)}`))
        .join("&");
      const headers = {
        accept: "application/json",
        "user-agent": "conclave",
        ...(call.body !== undefined && { "content-type": "application/json" }),
        ...(token !== undefined && { "x-consul-token": token }),
        ...(basicAuth !== undefined && {
          authorization: `Basic ${Buffer.from(basicAuth).toString("base64")}`,
        }),
      };
      const path = query === "" ? call.path : `${call.path}?${query}`;
      const { method, body, long = false } = call;
      const answer = await transport.send({ method, path, headers, body, long }, stop);
      if (answer.status < 300) return answer;
      const secrets = [token, basicAuth].filter((secret) => secret !== undefined);
      const text = maskSecrets(answer.text.slice(0, 8 * 1024), secrets);
      if (isForbidden(text) && answer.status !== 403) throw failure(call.what, 403, text);
      return { ...answer, text };
    });
  }

  async #token(): Promise<string | undefined> {
    const { token, tokenFile } = this.#options;
    if (token !== undefined || tokenFile === undefined) return token;
    try {
      return (await readFile(tokenFile, "utf8")).trim();
    } catch (cause) {
      throw new ConclaveError("forbidden", `the file with the ACL token cannot be read: ${describe(cause)}`);
    }
  }
}

/** Each part by itself: slashes are part of the key. */
function encodeKey(key: string): string {
  return key.split("/").map(encodeURIComponent).join("/");
}

function parsed(what: string, text: string): unknown {
  try {
    return parseExact(text);
  } catch {
    throw nonsense(what, "it is no JSON");
  }
}

function namesSession(found: unknown, id: string): boolean {
  return Array.isArray(found) && found.some((session: unknown) => property(session, "ID") === id);
}

function keyValue(what: string, item: unknown): KeyValue {
  const key = property(item, "Key");
  const value = property(item, "Value") ?? "";
  const session = property(item, "Session");
  const flags = unsigned(property(item, "Flags"));
  const modifyIndex = unsigned(property(item, "ModifyIndex"));
  const held = typeof session === "string" && session !== "";
  if (
    typeof key !== "string" ||
    typeof value !== "string" ||
    flags === undefined ||
    modifyIndex === undefined
  )
    throw nonsense(what, "a key lacks its name, value, flags or index");
  if (session !== undefined && typeof session !== "string") throw nonsense(what, "a session is no text");
  const text = Buffer.from(value, "base64").toString("utf8");
  return { key, value: text, flags, modifyIndex, session: held ? session : undefined };
}
