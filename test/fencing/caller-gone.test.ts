/** A request whose caller has gone: its handler is told why it is to stop. */
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { fenceHandler, Gate, passOf } from "../../src/fencing/index.js";
import { deferred } from "../../src/kit/wait.js";

it("the signal's reason is an error of the library, with its code", async () => {
  const begun = deferred<void>();
  const stopped = deferred<unknown>();
  const server = createServer(
    fenceHandler(new Gate(), async (incoming, response) => {
      const { signal } = passOf(incoming)!;
      begun.resolve();
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      stopped.resolve(signal.reason);
      response.end();
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const call = request({ port, host: "127.0.0.1", headers: { "Fencing-Token": "7" } });
  call.on("error", () => {});
  call.end();
  await begun.promise;
  call.destroy();
  expect(await stopped.promise).toMatchObject({ code: "state", message: "the caller has gone" });
  await new Promise<void>((resolve) => server.close(() => resolve()));
});
