/**
 * HTTP to one Consul agent. Short calls and long polls have connections of their
 * own, so that a poll never keeps a renewal waiting. Every request ends with its
 * signal by destroying its socket: a connection that hangs is not used again.
 */
import { readFileSync } from "node:fs";
import type { ClientRequest, IncomingMessage } from "node:http";
import { Agent as HttpAgent, request as httpRequest } from "node:http";
import type { RequestOptions } from "node:https";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { TLSSocket } from "node:tls";
import { ConclaveError, describe, isConclaveError } from "../../../kit/errors.js";
import type { Stop } from "../../../kit/stop.js";
import { onAbort } from "../../../kit/wait.js";

/** One request, as a program with a transport of its own gets it. */
export interface ConsulRequest {
  readonly method: "GET" | "PUT";
  /** From the root of the agent, query included. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Answered when something happens, minutes later perhaps. */
  readonly long: boolean;
}

/** What came back. */
export interface ConsulResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** Sends a request. Rejects = it is not known whether it took effect. */
export interface Transport {
  send(request: ConsulRequest, signal: Stop): Promise<ConsulResponse>;
  /** What waits, and what is idle, is on a path that hangs. */
  distrust(): void;
  close(): void;
}

/** Files of a TLS connection, read anew for every new one. */
export interface ConsulTlsFiles {
  /** Authorities that sign the agent's certificate. Default: the system's. */
  readonly ca?: string | undefined;
  /** The client's own certificate and key, where the agent asks for them. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** Name in the agent's certificate, if it is not the host's. */
  readonly serverName?: string | undefined;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Five hundred keys with values of sixteen kilobytes, in base64. */
const LARGEST_BODY = 16 * 1024 * 1024;

export class HttpTransport implements Transport {
  readonly #address: Address;
  readonly #tls: ConsulTlsFiles | undefined;
  readonly #short: HttpAgent;
  readonly #long: HttpAgent;
  /** Ends a request that is under way, one for each. */
  readonly #shortUnderWay = new Set<(reason: Error) => void>();
  readonly #longUnderWay = new Set<(reason: Error) => void>();
  #closed = false;

  constructor(address: Address, tls: ConsulTlsFiles | undefined) {
    this.#address = address;
    this.#tls = tls;
    // A connection that the other side lost without a word is found by the system's probes, if by nothing else.
    const options = { keepAlive: true, keepAliveMsecs: 5_000 };
    const agent = (): HttpAgent => (tls === undefined ? new HttpAgent(options) : new HttpsAgent(options));
    this.#short = agent();
    this.#long = agent();
  }

  send(call: ConsulRequest, signal: Stop): Promise<ConsulResponse> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) throw signal.reason;
      if (this.#closed) throw new ConclaveError("state", "the connection to Consul is closed");
      const request = this.#begin(call);
      const underWay = call.long ? this.#longUnderWay : this.#shortUnderWay;
      let cut: unknown;
      const stop = (reason: unknown): void => {
        cut ??= reason ?? new Error("aborted");
        request.destroy();
        if (isConclaveError(reason) && reason.code === "timeout") this.#dropIdle();
      };
      underWay.add(stop);
      const unlinkSignal = onAbort(signal, () => stop(signal.reason));
      let sent = false;
      onceConnected(request, () => (sent = true));
      const fail = (error: Error): void => reject(cut ?? this.#unanswered(error, call, sent));
      request.once("response", (response) => collect(response, resolve, fail));
      request.once("close", () => {
        underWay.delete(stop);
        unlinkSignal();
        fail(new Error("the connection closed before the answer was complete")); // nothing, if it was
      });
      request.on("error", fail);
      request.end(call.body);
    });
  }

  distrust(): void {
    const reason = new ConclaveError(
      "unavailable",
      "the connection to Consul has gone silent; it is made anew",
    );
    for (const stop of [...this.#longUnderWay]) stop(reason);
    this.#dropIdle();
  }

  close(): void {
    this.#closed = true;
    const reason = new ConclaveError("state", "the connection to Consul is closed");
    for (const stop of [...this.#shortUnderWay, ...this.#longUnderWay]) stop(reason);
    this.#short.destroy();
    this.#long.destroy();
  }

  /** Idle connections lie on the same path as one that hung: they are not used again. */
  #dropIdle(): void {
    for (const agent of [this.#short, this.#long]) {
      for (const sockets of Object.values(agent.freeSockets))
        for (const socket of sockets ?? []) socket.destroy();
    }
  }

  /** Throws if Node refuses to send what the configuration holds: a key that is none, a token with a line break. */
  #begin(call: ConsulRequest): ClientRequest {
    const { host, port } = this.#address;
    try {
      const options: RequestOptions = {
        ...{ hostname: host.replace(/^\[|\]$/g, ""), port, method: call.method, path: call.path },
        agent: call.long ? this.#long : this.#short,
        headers: {
          ...call.headers,
          ...(call.body !== undefined && { "content-length": Buffer.byteLength(call.body) }),
        },
        ...(this.#tls !== undefined && tlsOptions(this.#tls, host)),
      };
      return (this.#tls === undefined ? httpRequest : httpsRequest)(options);
    } catch (cause) {
      throw new ConclaveError(
        "forbidden",
        `the credentials for Consul cannot be used (${describe(cause)}): check the token, the client certificate, its key and the authorities`,
        { cause },
      );
    }
  }

  #unanswered(cause: Error, { method }: ConsulRequest, sent: boolean): ConclaveError {
    // Node keeps what it could not read as HTTP, and that may quote our request: loggers print all of an error.
    if ("rawPacket" in cause) delete cause.rawPacket;
    const at = `${this.#address.host}:${this.#address.port}`;
    const why = describe(cause);
    const message = !sent
      ? `Consul at ${at} cannot be reached (${why}): check host, port, TLS settings and that an agent runs there`
      : `no answer from Consul at ${at} (${why})${method === "GET" ? "" : "; whether the request took effect is unknown"}`;
    return new ConclaveError("unavailable", message, { cause });
  }
}

/** Before that nothing of the request was sent. */
function onceConnected(request: ClientRequest, connected: () => void): void {
  request.once("socket", (socket) => {
    if (!socket.connecting) connected(); // it was used before
    else socket.once(socket instanceof TLSSocket ? "secureConnect" : "connect", connected);
  });
}

function tlsOptions({ ca, cert, key, serverName }: ConsulTlsFiles, host: string): RequestOptions {
  return {
    ...(ca !== undefined && { ca: readFileSync(ca) }),
    ...(cert !== undefined && { cert: readFileSync(cert) }),
    ...(key !== undefined && { key: readFileSync(key) }),
    servername: serverName ?? (/^[\d.]+$|:/.test(host) ? "" : host),
  };
}

function collect(
  response: IncomingMessage,
  resolve: (answer: ConsulResponse) => void,
  fail: (error: Error) => void,
): void {
  const chunks: Buffer[] = [];
  let size = 0;
  response.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > LARGEST_BODY) response.destroy(new Error(`the answer is larger than ${LARGEST_BODY} bytes`));
    else chunks.push(chunk);
  });
  response.once("end", () =>
    resolve({
      status: response.statusCode ?? 0,
      headers: response.headers,
      text: Buffer.concat(chunks).toString("utf8"),
    }),
  );
  response.on("error", fail);
}
