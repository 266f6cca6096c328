/** Elections on a Consul of the tests, with short leases, and requests that are counted. */
import { consulBackend } from "../../src/backends/consul/index.js";
import type { ConsulOptions, ConsulRequest, ConsulResponse } from "../../src/backends/consul/index.js";
import { Election } from "../../src/index.js";
import type { ElectionOptions } from "../../src/index.js";
import type { ConsulServer } from "./consul-server.js";

export const TTL_MS = 2_000;

export function consulElection(
  server: Pick<ConsulServer, "address">,
  name: string,
  options: Partial<ElectionOptions> & { readonly consul?: ConsulOptions } = {},
): Election {
  const { consul, ...rest } = options;
  return new Election({
    name,
    ttlMs: TTL_MS,
    backend: consulBackend({
      ...{ address: server.address, prefix: "test", minTtlMs: 1_000, env: {} },
      ...consul,
    }),
    closeBackend: true,
    ...rest,
  });
}

/** Sends by fetch, and counts. */
export class CountingSend {
  long = 0;
  mostLong = 0;
  readonly asked: ConsulRequest[] = [];

  #cut = new AbortController();

  constructor(readonly address: string) {}

  /** What is under way is given up. */
  abort(): void {
    this.#cut.abort(new Error("cut off"));
    this.#cut = new AbortController();
  }

  readonly send = async (request: ConsulRequest, signal: AbortSignal): Promise<ConsulResponse> => {
    const { method, path, headers, body, long } = request;
    this.asked.push(request);
    if (long) this.mostLong = Math.max(this.mostLong, ++this.long);
    try {
      const either = AbortSignal.any([signal, this.#cut.signal]);
      const init = { method, headers, signal: either, ...(body !== undefined && { body }) };
      const response = await fetch(`http://${this.address}${path}`, init);
      const text = await response.text();
      return { status: response.status, headers: Object.fromEntries(response.headers), text };
    } finally {
      if (long) this.long--;
    }
  };
}
