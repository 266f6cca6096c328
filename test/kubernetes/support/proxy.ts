/**
 * A plain-HTTP front of the API server that tests bend: it passes requests on
 * with their own credentials, and refuses, delays, hangs or cuts what it is told.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "node:http";
import { Agent, request } from "node:https";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { kubeconfigAccess } from "../../../src/backends/kubernetes/kubeconfig.js";

export type Treatment =
  | {
      readonly kind: "refuse";
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body?: unknown;
    }
  /** Neither answers nor closes. */
  | { readonly kind: "hang" }
  /** Carries it out, and loses the answer. */
  | { readonly kind: "swallow" }
  /** Passes it on after this long, and its answer too: a server that is far away. */
  | { readonly kind: "slow"; readonly ms: number }
  | { readonly kind: "cut" };

export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly watch: boolean;
}

export class ApiProxy {
  /** Decides what happens to a request; `undefined` passes it on. */
  treat: (request: Seen) => Treatment | undefined = () => undefined;
  readonly seen: Seen[] = [];
  readonly #server: Server;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #sockets = new Set<Socket>();
  readonly #streams = new Set<ServerResponse>();
  readonly #directory = mkdtempSync(join(tmpdir(), "conclave-proxy-"));
  #frozen = false;

  private constructor(
    readonly upstream: URL,
    readonly ca: string | Buffer | undefined,
  ) {
    this.#server = createServer((incoming, outgoing) => this.#serve(incoming, outgoing));
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  static async start(kubeconfig: string): Promise<ApiProxy> {
    const access = await kubeconfigAccess({ path: kubeconfig });
    const { ca } = await access.credentials();
    const proxy = new ApiProxy(access.server, ca);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  }

  /** A kubeconfig like the given one, by way of this proxy. */
  kubeconfig(of: string): string {
    const config = parse(readFileSync(of, "utf8"));
    for (const { cluster } of config.clusters) {
      cluster.server = this.url;
      delete cluster["certificate-authority-data"];
    }
    const path = join(this.#directory, `${Math.random().toString(36).slice(2)}.kubeconfig`);
    writeFileSync(path, stringify(config), { mode: 0o600 });
    return path;
  }

  /** From now on nothing gets through in either direction, and nobody is told: a black hole. */
  freeze(): void {
    this.#frozen = true;
  }

  thaw(): void {
    this.#frozen = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Ends every open watch. */
  cutWatches(): number {
    const count = this.#streams.size;
    for (const stream of this.#streams) stream.destroy();
    return count;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#agent.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
    outgoing.on("error", () => {});
    const url = incoming.url ?? "/";
    const seen = { method: incoming.method ?? "", url, watch: url.includes("watch=1") };
    this.seen.push(seen);
    const treatment = this.#frozen ? ({ kind: "hang" } as const) : this.treat(seen);
    if (treatment?.kind === "hang") return;
    if (treatment?.kind === "cut") return void incoming.socket.destroy();
    if (treatment?.kind === "refuse") {
      incoming.resume();
      outgoing.writeHead(treatment.status, { "content-type": "application/json", ...treatment.headers });
      return void outgoing.end(
        JSON.stringify(
          treatment.body ?? { kind: "Status", code: treatment.status, message: "said the test" },
        ),
      );
    }
    const pass = (): void => this.#pass(incoming, outgoing, seen.watch, treatment);
    if (treatment?.kind === "slow") setTimeout(pass, treatment.ms);
    else pass();
  }

  #pass(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    watch: boolean,
    treatment: Treatment | undefined,
  ): void {
    const later = (run: () => void): void =>
      treatment?.kind === "slow" ? void setTimeout(run, treatment.ms) : run();
    const { host: _host, connection: _connection, ...headers } = incoming.headers;
    const onward = request(new URL(incoming.url ?? "/", this.upstream), {
      method: incoming.method,
      headers,
      ca: this.ca,
      agent: this.#agent,
    });
    onward.on("error", () => outgoing.destroy());
    onward.once("response", (answer) => {
      if (treatment?.kind === "swallow") return void answer.resume();
      if (watch) this.#streams.add(outgoing);
      later(() => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        outgoing.flushHeaders();
      });
      answer.on("data", (chunk: Buffer) => {
        if (!this.#frozen) later(() => outgoing.write(chunk));
      });
      answer.once("end", () => {
        if (!this.#frozen) later(() => outgoing.end());
      });
      answer.on("error", () => outgoing.destroy());
      outgoing.once("close", () => {
        this.#streams.delete(outgoing);
        answer.destroy();
      });
    });
    outgoing.once("close", () => onward.destroy());
    incoming.pipe(onward);
  }
}
