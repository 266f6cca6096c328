/** A store nobody has heard of: keys over HTTP, with ETags that rise, conditional writes, and the age of each value. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

export interface StoreServer extends AsyncDisposable {
  readonly port: number;
  /** Loses everything, as a store without a disk does when it is started again. */
  forget(): void;
  /** Sets its clock. */
  step(ms: number): void;
}

export async function startStore(): Promise<StoreServer> {
  const values = new Map<string, { etag: string; value: string; at: number }>();
  let version = 0;
  let aheadMs = 0;
  const now = (): number => performance.now() + aheadMs;
  const server = createServer(async (request, response) => {
    const key = new URL(request.url ?? "/", "http://store").searchParams.get("key") ?? "";
    const value = await text(request).catch(() => null);
    if (value === null) return;
    const current = values.get(key);
    if (request.method === "PUT") {
      const { "if-match": expected, "if-none-match": absent } = request.headers;
      const allowed = absent === "*" ? current === undefined : current?.etag === expected;
      if (!allowed) return response.writeHead(412).end();
      const etag = `"${++version}"`;
      values.set(key, { etag, value, at: now() });
      return response.writeHead(200, { etag }).end();
    }
    if (current === undefined) return response.writeHead(404).end();
    const age = String(now() - current.at);
    return response.writeHead(200, { etag: current.etag, "x-age-ms": age }).end(current.value);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    step: (ms) => void (aheadMs += ms),
    forget: () => {
      values.clear();
      version = 0;
    },
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
