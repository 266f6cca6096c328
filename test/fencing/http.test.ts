/** The HTTP fence: shapes of handlers, hostile headers, callers that go away. */
import { createServer, request as httpRequest } from "node:http";
import type { RequestListener, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import {
  fenceHandler,
  fenceHook,
  fenceMiddleware,
  Gate,
  passOf,
  tokenFetch,
} from "../../src/fencing/index.js";
import { StaleLeaderError } from "../../src/index.js";

const open: Server[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** A promise with its handle. */
function gatePost(): { readonly passed: Promise<void>; open(): void } {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { passed, open };
}

/** A request with headers as they are, duplicates and all. */
function raw(url: string, headers: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const host = new URL(url).host;
    const sent = httpRequest(url, { method: "POST", headers: ["Host", host, ...headers] }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on("error", reject);
    sent.end();
  });
}

test("whatever is not one plain decimal token is refused, and the handler is not called", async () => {
  let called = 0;
  const url = await serve(
    fenceHandler(new Gate(), (_, response) => {
      called++;
      response.end();
    }),
  );
  const bad = [
    "",
    "-1",
    "+1",
    "1e3",
    "0x10",
    "1.0",
    "1n",
    "1_000",
    "١",
    "1,2",
    `${10n ** 20n}`,
    "9".repeat(9000),
  ];
  for (const text of bad) {
    const status = await raw(url, ["Fencing-Token", Buffer.from(text).toString("latin1")]);
    expect([text.slice(0, 30), status]).toEqual([text.slice(0, 30), 400]);
  }
  expect(await raw(url, [])).toBe(428);
  expect(await raw(url, ["Fencing-Token", "5", "fencing-token", "7"])).toBe(400);
  expect(called).toBe(0);
  expect(await raw(url, ["Fencing-Token", "7"])).toBe(200);
  expect(await raw(url, ["Fencing-Token", "007"])).toBe(200); // the same number
  expect(await raw(url, ["Fencing-Token", "006"])).toBe(409);
  expect(called).toBe(2);
});

test("Fastify: what is refused stays refused, however long the answer takes to be sent", async () => {
  const hook = fenceHook(new Gate());
  const acted: string[] = [];
  const url = await serve((request, response) => {
    // As Fastify does it: `send` goes through asynchronous hooks of its own, a reply is a thenable that settles when
    // it is sent, and a hook that has settled before lets the handler run.
    let sent = false;
    const done = gatePost();
    const reply = {
      raw: response,
      code: (status: number) => {
        response.statusCode = status;
        return reply;
      },
      headers: (values: Record<string, string>) => {
        for (const [name, value] of Object.entries(values)) response.setHeader(name, value);
        return reply;
      },
      send: (body: string) => {
        setTimeout(() => {
          sent = true;
          response.end(body);
          done.open();
        }, 20);
        return reply;
      },
      // oxlint-disable-next-line unicorn/no-thenable -- Fastify's reply is one
      then: (resolve: () => void) => void done.passed.then(resolve),
    };
    void hook({ raw: request }, reply).then(() => {
      if (sent) return;
      acted.push(request.headers["fencing-token"] as string);
      response.end("acted");
    });
  });
  expect((await tokenFetch(34n)(url, { method: "POST" })).status).toBe(200);
  await expect(tokenFetch(33n)(url, { method: "POST" })).rejects.toThrow(StaleLeaderError);
  expect(await raw(url, ["Fencing-Token", "x"])).toBe(400);
  expect(await raw(url, [])).toBe(428);
  expect(acted).toEqual(["34"]);
});

test("a handler whose caller has gone is still waited for: nothing of it follows a newer leader's act", async () => {
  const gate = new Gate();
  const acts: string[] = [];
  const begun = gatePost();
  const goOn = gatePost();
  const url = await serve(
    fenceHandler(gate, async (request, response) => {
      const { token } = passOf(request)!;
      if (token === 33n) {
        begun.open();
        await goOn.passed;
      }
      acts.push(`${token}`);
      response.end();
    }),
  );
  const away = new AbortController();
  const old = tokenFetch(33n)(url, { method: "POST", signal: away.signal }).catch(() => "gone");
  await begun.passed;
  away.abort(); // the old leader dies; its handler is at work
  expect(await old).toBe("gone");
  const fresh = tokenFetch(34n)(url, { method: "POST" });
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(acts).toEqual([]);
  goOn.open();
  await fresh;
  expect(acts).toEqual(["33", "34"]);
});

test("Express: a handler whose caller has gone is told to stop", async () => {
  const fence = fenceMiddleware(new Gate());
  const begun = gatePost();
  const told = gatePost();
  const url = await serve((request, response) =>
    fence(request, response, () => {
      passOf(request)!.signal.addEventListener("abort", told.open);
      begun.open();
    }),
  );
  const away = new AbortController();
  const old = tokenFetch(33n)(url, { method: "POST", signal: away.signal }).catch(() => "gone");
  await begun.passed;
  away.abort();
  await told.passed;
  expect(await old).toBe("gone");
});

test("a caller that has gone while it waited at the gate is not served", async () => {
  const gate = new Gate();
  const served: bigint[] = [];
  const url = await serve(
    fenceHandler(gate, (request, response) => {
      served.push(passOf(request)!.token);
      response.end();
    }),
  );
  const inside = await gate.enter(33n);
  const away = new AbortController();
  const waiting = tokenFetch(34n)(url, { method: "POST", signal: away.signal }).catch(() => "gone");
  await new Promise<void>((resolve) => inside.signal.addEventListener("abort", () => resolve()));
  away.abort();
  expect(await waiting).toBe("gone");
  await new Promise((resolve) => setTimeout(resolve, 100));
  inside.leave();
  expect((await tokenFetch(35n)(url, { method: "POST" })).status).toBe(200);
  expect(served).toEqual([35n]);
});
