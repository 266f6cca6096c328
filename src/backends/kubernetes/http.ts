/**
 * JSON over HTTP to one API server. Every request ends with its signal, by
 * destroying its socket: a connection that hangs is never used again.
 */
import type { ClientRequest, IncomingMessage } from "node:http";
import { Agent as HttpAgent, request as httpRequest } from "node:http";
import type { RequestOptions } from "node:https";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Clock } from "../../seam/clock.js";
import { ConclaveError, describe, isConclaveError } from "../../kit/errors.js";
import { maskSecrets } from "../../kit/secrets.js";
import { onAbort, sleep } from "../../kit/wait.js";
import type { Access, Credentials } from "./access.js";
import { sameIdentity, secretsOf } from "./access.js";
import { failure, refusalOf, retryAfterMs } from "./failures.js";

/** A Lease is a few kilobytes; etcd refuses objects above 1.5 MiB. */
const LARGEST_BODY = 4 * 1024 * 1024;
/**
 * However long a server asks us to keep away, a leader must try again, more than
 * once, before its deadline: ten seconds after its last renewal by default.
 */
const LONGEST_HOLD_OFF_MS = 2_000;

export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** From the root of the server, query included. */
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
  /** For messages: `updating Lease default/jobs`. */
  readonly what: string;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** What elections ask of an API server. */
export interface Api {
  json(call: Call, signal: AbortSignal): Promise<Answer>;
  open(call: Call, signal: AbortSignal): Promise<IncomingMessage>;
  close(): void;
}

export class ApiClient implements Api {
  readonly #access: Access;
  readonly #clock: Clock;
  readonly #agent: HttpAgent;
  /** Ends a request that is under way, one for each. */
  readonly #underWay = new Set<() => void>();
  #closed = false;
  /** Until then the server asked us to stay away (429 with Retry-After). */
  #notBefore = -Infinity;

  constructor(access: Access, clock: Clock) {
    this.#access = access;
    this.#clock = clock;
    this.#agent =
      access.server.protocol === "http:"
        ? new HttpAgent({ keepAlive: true })
        : new HttpsAgent({ keepAlive: true });
  }

  /**
   * One request, read to its end. Resolves with 2xx, 404, 409 and 422, which
   * callers decide; anything else throws. A throw means unknown, except where
   * the error's code says it was refused.
   */
  async json(call: Call, signal: AbortSignal): Promise<Answer> {
    await this.#turn(call, signal);
    let credentials = await this.#access.credentials();
    let answer = await this.#exchange(call, credentials, signal);
    if (answer.status === 401) {
      const tried = credentials;
      await this.#access.refresh();
      credentials = await this.#access.credentials();
      // A refused request was not carried out: it is sent again only if there is something new to say.
      if (!sameIdentity(tried, credentials)) answer = await this.#exchange(call, credentials, signal);
    }
    const { status, body } = answer;
    if ((status >= 200 && status < 300) || status === 404 || status === 409 || status === 422) return answer;
    throw failure(call.what, refusalOf(status, body));
  }

  /** Opens a response that is read as it comes (a watch). The signal ends it. */
  async open(call: Call, signal: AbortSignal): Promise<IncomingMessage> {
    await this.#turn(call, signal);
    const credentials = await this.#access.credentials();
    const response = await this.#send(call, credentials, signal);
    if (response.statusCode === 200) return response;
    const body = withoutSecrets(await readAll(response, call.what), credentials);
    if (response.statusCode === 401) await this.#access.refresh();
    throw failure(call.what, refusalOf(response.statusCode ?? 0, body));
  }

  close(): void {
    this.#closed = true;
    for (const end of [...this.#underWay]) end();
    this.#agent.destroy();
  }

  /** Waits while the server asked for silence. */
  async #turn(call: Call, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#closed) throw new ConclaveError("state", `${call.what}: the Kubernetes backend is closed`);
    const delay = this.#notBefore - this.#clock.now();
    if (delay <= 0) return;
    await sleep(this.#clock, delay, signal);
    if (signal.aborted) {
      throw new ConclaveError(
        "unavailable",
        `${call.what}: the API server asked for a pause (429, Retry-After) that is not over yet`,
      );
    }
  }

  async #exchange(call: Call, credentials: Credentials, signal: AbortSignal): Promise<Answer> {
    const response = await this.#send(call, credentials, signal);
    const body = await readAll(response, call.what);
    if (response.statusCode === 429 || response.statusCode === 503) {
      const pause = retryAfterMs(response.headers["retry-after"]);
      if (pause !== undefined) this.#notBefore = this.#clock.now() + Math.min(pause, LONGEST_HOLD_OFF_MS);
    }
    const status = response.statusCode ?? 0;
    return { status, body: status < 300 ? body : withoutSecrets(body, credentials) };
  }

  #send(call: Call, credentials: Credentials, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const { server } = this.#access;
      const body = call.body === undefined ? undefined : JSON.stringify(call.body);
      const options = this.#options(call, credentials, body);
      const request = begin(call.what, server, options);
      let cut: unknown;
      const stop = (reason: unknown): void => {
        cut = reason ?? new Error("aborted");
        request.destroy();
        if (isConclaveError(reason) && reason.code === "timeout") this.#distrustIdle();
      };
      const end = (): void => stop(new ConclaveError("state", "the Kubernetes backend was closed"));
      this.#underWay.add(end);
      const unlinkSignal = onAbort(signal, () => stop(signal.reason));
      const unlink = (): void => {
        this.#underWay.delete(end);
        unlinkSignal();
      };
      request.once("response", (response) => {
        // Until its reader listens: an error nobody hears would end the process.
        response.on("error", () => {});
        resolve(response);
      });
      request.once("close", unlink);
      request.on("error", (error) => {
        unlink();
        reject(cut ?? unreachable(call.what, server, error));
      });
      request.end(body);
    });
  }

  /** A connection hung. The idle ones lie on the same path: they are not used again. */
  #distrustIdle(): void {
    for (const sockets of Object.values(this.#agent.freeSockets)) {
      for (const socket of sockets ?? []) socket.destroy();
    }
  }

  #options(call: Call, credentials: Credentials, body: string | undefined): RequestOptions {
    const { server } = this.#access;
    return {
      protocol: server.protocol,
      hostname: server.hostname.replace(/^\[|\]$/g, ""),
      port: server.port === "" ? undefined : Number(server.port),
      method: call.method,
      path: server.pathname.replace(/\/$/, "") + call.path,
      agent: credentials.agent ?? this.#agent,
      headers: {
        ...credentials.headers,
        accept: "application/json",
        "user-agent": "conclave",
        ...(credentials.authorization !== undefined && { authorization: credentials.authorization }),
        ...(body !== undefined && {
          "content-type": call.contentType ?? "application/json",
          "content-length": Buffer.byteLength(body),
        }),
      },
      ...(credentials.ca !== undefined && { ca: credentials.ca }),
      ...(credentials.cert !== undefined && { cert: credentials.cert }),
      ...(credentials.key !== undefined && { key: credentials.key }),
      ...(credentials.passphrase !== undefined && { passphrase: credentials.passphrase }),
      ...(credentials.servername !== undefined && { servername: credentials.servername }),
      ...(credentials.insecure === true && { rejectUnauthorized: false }),
    };
  }
}

/** Throws if Node refuses to send what the configuration holds: a key that is none, a token with a line break. */
function begin(what: string, server: URL, options: RequestOptions): ClientRequest {
  try {
    return (server.protocol === "http:" ? httpRequest : httpsRequest)(options);
  } catch (cause) {
    throw new ConclaveError(
      "forbidden",
      `${what}: the credentials cannot be used (${describe(cause)}): check the token, the client certificate and its key`,
      { cause },
    );
  }
}

function readAll(response: IncomingMessage, what: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > LARGEST_BODY) response.destroy(new Error(`the answer is larger than ${LARGEST_BODY} bytes`));
      else chunks.push(chunk);
    });
    response.once("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
    const cutShort = new Error("the connection closed before the answer was complete");
    response.once("error", (error) => reject(broken(what, error)));
    response.once("close", () => reject(broken(what, cutShort)));
    if (response.destroyed) reject(broken(what, cutShort));
  });
}

/** Only the first few hundred characters of an error body are reported. */
const LARGEST_REFUSAL = 8 * 1024;

/** A refusal that may quote our request. Read as JSON first: escapes would hide a secret from the comparison. */
function withoutSecrets(body: string, credentials: Credentials): string {
  const secrets = secretsOf(credentials);
  const mask = (text: string): string => maskSecrets(text.slice(0, LARGEST_REFUSAL), secrets);
  try {
    return JSON.stringify(JSON.parse(body), (_, value: unknown) =>
      typeof value === "string" ? mask(value) : value,
    );
  } catch {
    return mask(body);
  }
}

function broken(what: string, cause: Error): ConclaveError {
  return new ConclaveError("unavailable", `${what}: ${describe(cause)}; whether it took effect is unknown`, {
    cause,
  });
}

function unreachable(what: string, server: URL, cause: Error): ConclaveError {
  // Node keeps what it could not read as HTTP, and that may quote our request: loggers print all of an error.
  if ("rawPacket" in cause) delete cause.rawPacket;
  return new ConclaveError("unavailable", `${what}: cannot talk to ${server.origin}: ${describe(cause)}`, {
    cause,
  });
}
