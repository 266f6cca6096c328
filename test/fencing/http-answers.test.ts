/** Fenced HTTP, header by header: what a caller sends, what a refusal says, what passes without a token. */
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import {
  fencedFetch,
  fenceHandler,
  fenceHook,
  fenceMiddleware,
  Gate,
  HIGHEST_HEADER,
  passOf,
  TOKEN_HEADER,
  tokenFetch,
} from "../../src/fencing/index.js";
import type { Fetch } from "../../src/fencing/index.js";
import { StaleLeaderError } from "../../src/index.js";

const open: Server[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(listener: Listener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

describe("a caller", () => {
  /** Keeps what was sent, and answers as the test says. */
  function sender(answer: Response): {
    send: Fetch;
    sent: { input: unknown; headers: Headers; method: unknown }[];
  } {
    const sent: { input: unknown; headers: Headers; method: unknown }[] = [];
    const send: Fetch = async (input, init) => {
      sent.push({ input, headers: new Headers(init?.headers), method: init?.method });
      return answer;
    };
    return { send, sent };
  }

  it("sends its token with its own headers, whichever way they are given", async () => {
    const { send, sent } = sender(new Response("ok"));
    const call = tokenFetch(7n, send);
    await call("http://a/", { method: "PUT", headers: { "x-own": "1" } });
    await call(new Request("http://b/", { headers: { "x-own": "2" } }));
    await call(new Request("http://c/", { headers: { "x-own": "2" } }), { headers: { "x-other": "3" } });
    await call("http://d/", { headers: { [TOKEN_HEADER]: "99" } });
    expect(sent.map(({ headers }) => headers.get(TOKEN_HEADER))).toEqual(["7", "7", "7", "7"]);
    expect(sent.map(({ headers }) => headers.get("x-own"))).toEqual(["1", "2", null, null]);
    expect([sent[0]?.input, sent[0]?.method, sent[2]?.headers.get("x-other")]).toEqual([
      "http://a/",
      "PUT",
      "3",
    ]);
  });

  it("is told by a StaleLeaderError that a newer leader has come, and the body is let go", async () => {
    let cancelled = 0;
    const body = new ReadableStream({ cancel: () => void cancelled++ });
    const { send } = sender(new Response(body, { status: 409, headers: { [HIGHEST_HEADER]: "9" } }));
    await expect(tokenFetch(7n, send)("http://a/")).rejects.toMatchObject({ token: 7n, highest: 9n });
    expect(cancelled).toBe(1);
    const bare = sender(new Response(null, { status: 409, headers: { [HIGHEST_HEADER]: "9" } }));
    await expect(tokenFetch(7n, bare.send)("http://a/")).rejects.toBeInstanceOf(StaleLeaderError);
  });

  it.each([
    [409, {}],
    [409, { [HIGHEST_HEADER]: "none" }],
    [200, { [HIGHEST_HEADER]: "9" }],
    [500, { [HIGHEST_HEADER]: "9" }],
  ])("gets any other answer as it is: %d %j", async (status, headers) => {
    const answer = new Response("x", { status, headers });
    expect(await tokenFetch(7n, sender(answer).send)("http://a/")).toBe(answer);
  });

  it("with a term sends nothing once it is over; a bare token is checked at once", async () => {
    let held = true;
    const assertHeld = (): void => {
      if (!held) throw new Error("over");
    };
    const { send, sent } = sender(new Response("ok"));
    const call = fencedFetch({ token: 7n, signal: new AbortController().signal, assertHeld }, send);
    await call("http://a/");
    held = false;
    await expect(call("http://a/")).rejects.toThrow("over");
    expect(sent.map(({ headers }) => headers.get(TOKEN_HEADER))).toEqual(["7"]);
    expect(() => tokenFetch(-1n)).toThrow(/fencing token/);
  });
});

describe("a refusal", () => {
  const acted: Listener = (_, response) => void response.end("acted");

  async function refused(gate: Gate, headers: Record<string, string>): Promise<unknown[]> {
    const url = await serve(fenceHandler(gate, acted));
    const response = await fetch(url, { method: "POST", headers });
    const kept = ["content-type", "cache-control", HIGHEST_HEADER].map((name) => response.headers.get(name));
    return [response.status, ...kept, await response.json()];
  }

  it("of an older token says both numbers, in header and body", async () => {
    const gate = new Gate();
    await gate.check(9n);
    expect(await refused(gate, { [TOKEN_HEADER]: "7" })).toEqual([
      409,
      "application/json",
      "no-store",
      "9",
      {
        error: {
          code: "stale-leader",
          message: expect.stringContaining("token 7 is older than 9"),
          token: "7",
          highest: "9",
        },
      },
    ]);
  });

  it("says what to send, where no token or a bad one came", async () => {
    const missing = {
      error: { code: "invalid", message: expect.stringContaining(`in the header ${TOKEN_HEADER}`) },
    };
    const bad = { error: { code: "invalid", message: expect.stringContaining("one decimal number") } };
    expect(await refused(new Gate(), {})).toEqual([428, "application/json", "no-store", null, missing]);
    expect(await refused(new Gate(), { [TOKEN_HEADER]: "x" })).toMatchObject([400, {}, {}, null, bad]);
  });

  it("says that nothing was done, and why, if the fence cannot be asked", async () => {
    const gate = new Gate({ fence: { check: () => Promise.reject(new Error("no answer from the store")) } });
    expect(await refused(gate, { [TOKEN_HEADER]: "7" })).toMatchObject([
      503,
      "application/json",
      "no-store",
      null,
      {
        error: {
          code: "unavailable",
          message: expect.stringMatching(/nothing was done: no answer from the store/),
        },
      },
    ]);
  });

  it("is recognised from another copy of the library, and only with its number", async () => {
    const foreign = (more: object): Gate => {
      const error = Object.assign(new Error("older"), {
        [Symbol.for("conclave.error")]: true,
        code: "stale-leader",
      });
      return new Gate({ fence: { check: () => Promise.reject(Object.assign(error, more)) } });
    };
    expect((await refused(foreign({ token: 7n, highest: 9n }), { [TOKEN_HEADER]: "7" }))[0]).toBe(409);
    expect((await refused(foreign({}), { [TOKEN_HEADER]: "7" }))[0]).toBe(503);
    expect((await refused(foreign({ code: "timeout", highest: 9n }), { [TOKEN_HEADER]: "7" }))[0]).toBe(503);
  });
});

describe("a request", () => {
  it("passes without a token where it is not guarded, and then has no pass", async () => {
    const seen: unknown[] = [];
    const guarded = (request: IncomingMessage): boolean => request.method !== "GET";
    const handler: Listener = (request, response) => {
      seen.push(passOf(request)?.token);
      response.end();
    };
    const hook = fenceHook(new Gate(), { guarded });
    const urls = [
      await serve(fenceHandler(new Gate(), handler, { guarded })),
      await serve((request, response) =>
        fenceMiddleware(new Gate(), { guarded })(request, response, () => handler(request, response)),
      ),
      await serve((request, response) => {
        const reply = {
          raw: response,
          code: (status: number) => ((response.statusCode = status), reply),
          headers: () => reply,
          send: (body: string) => response.end(body),
        };
        void hook({ raw: request }, reply).then((sent) => sent === undefined && handler(request, response));
      }),
    ];
    for (const url of urls) {
      expect((await fetch(url)).status).toBe(200);
      expect((await fetch(url, { method: "POST" })).status).toBe(428);
      expect((await tokenFetch(7n)(url, { method: "POST" })).status).toBe(200);
    }
    expect(seen).toEqual([undefined, 7n, undefined, 7n, undefined, 7n]);
  });

  it("leaves the gate when it has been answered, so that a newer leader need not wait", async () => {
    const signals: AbortSignal[] = [];
    let closed = (): void => {};
    const url = await serve(
      fenceMiddlewareHandler(new Gate(), (request, response) => {
        signals.push(passOf(request)!.signal);
        response.once("close", () => closed());
        response.end("answered");
      }),
    );
    for (const token of [7n, 8n]) {
      const over = new Promise<void>((resolve) => (closed = resolve));
      expect((await tokenFetch(token)(url)).status).toBe(200);
      await over;
    }
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
  });
});

function fenceMiddlewareHandler(gate: Gate, handler: Listener): Listener {
  const fence = fenceMiddleware(gate);
  return (request, response) => fence(request, response, () => handler(request, response));
}
