/** Questions to a server under test, without the politeness of `fetch`. */
import { Agent, request as httpRequest } from "node:http";
import type { IncomingHttpHeaders, RequestOptions } from "node:http";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export function ask(url: string, options: RequestOptions & { body?: string } = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { body: sent, ...rest } = options;
    const request = httpRequest(new URL(url), { agent: false, ...rest }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (body += chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    });
    request.on("error", reject);
    request.end(sent);
  });
}

export function post(url: string, token?: string, headers: Record<string, string> = {}): Promise<Answer> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return ask(url, { method: "POST", headers: { ...authorization, ...headers } });
}

/** Many questions at once, over connections that are kept. */
export async function flood(url: string, count: number): Promise<Answer[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1000 });
  try {
    return await Promise.all(Array.from({ length: count }, () => ask(url, { agent })));
  } finally {
    agent.destroy();
  }
}

/** Waits until something holds, asking gently. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const limit = performance.now() + 20_000;
  while (!(await holds())) {
    if (performance.now() > limit) throw new Error(`waited 20 s in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A port that is taken until the returned function is called. */
export async function takenPort(): Promise<{ port: number; free: () => Promise<void> }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { port, free: () => new Promise((resolve) => server.close(() => resolve())) };
}
