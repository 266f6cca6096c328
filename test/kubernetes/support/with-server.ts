/** Tests that need an API server. Without one they say so and are skipped, or fail where it is required. */
import { afterAll, beforeAll, describe } from "vitest";
import type { Server } from "./server.js";
import { NOT_RUN, required, source, startServer } from "./server.js";

if (source === undefined) console.warn(`\n${NOT_RUN}\n`);

/**
 * A part of the tests that needs a server, which is started once for the file
 * and stopped after it. Much is waiting, on machines that may be busy: time
 * limits are for what never comes, not for what comes late.
 */
export function withServer(name: string, body: (server: () => Server) => void): void {
  // oxlint-disable-next-line vitest/valid-title -- a string all the same
  describe.skipIf(source === undefined && !required)(name, { timeout: 90_000 }, () => {
    let server: Server | undefined;
    beforeAll(async () => {
      server = await startServer();
    }, 120_000);
    afterAll(() => server?.stop(), 60_000);
    body(() => {
      if (server === undefined) throw new Error("the API server is not up");
      return server;
    });
  });
}
