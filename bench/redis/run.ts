/**
 * Redis: handover, acquire and release, idle load, a thousand elections in one
 * process. The server is started here, on this machine, without a disk: all
 * figures are for a loopback network.
 */
import type { Row } from "../measure.js";
import { hasRedis, RedisServer } from "../../test/support/redis-server.js";
import { acquireRelease } from "./acquire.js";
import { handover } from "./handover.js";
import { idle, many } from "./idle.js";

export default async function* bench(): AsyncGenerator<Row> {
  if (!hasRedis()) {
    yield { what: "skipped", result: "redis-server is not installed (make servers)" };
    return;
  }
  const wanted = process.env["BENCH_PART"];
  const parts = [handover, acquireRelease, idle, many];
  if (wanted !== undefined && !parts.some(({ name }) => name === wanted))
    throw new Error(
      `no part ${wanted} of this bench: BENCH_PART is one of ${parts.map(({ name }) => name).join(", ")}`,
    );
  for (const part of parts) {
    if (wanted !== undefined && part.name !== wanted) continue;
    const server = await RedisServer.start();
    try {
      yield* part(server);
    } finally {
      await server.stop();
    }
  }
}
