/**
 * A worker that runs on one replica only, with Redis and ioredis and nothing else.
 *
 * Needs Redis: REDIS_URL, or localhost:6379. Start it twice, end the first one
 * with Ctrl-C, and the second takes over. Redis excludes two leaders by best
 * effort, so the writes go through a fence: an older leader's are refused.
 */
import { Redis } from "ioredis";
import { Election } from "conclave";
import { RedisFence, redisBackend } from "conclave/redis";

// Your application's own client. The backend and the fence make connections of their own from it.
const client = new Redis(process.env["REDIS_URL"] ?? "redis://localhost:6379", { lazyConnect: true });

await using fence = new RedisFence({ client, key: "fence:{reports}" });
await using election = new Election({
  name: "reports",
  backend: redisBackend({ client }),
  ttlMs: 5_000,
  closeBackend: true,
});

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
process.once("SIGINT", () => stop.abort());

election.on("error", ({ error }) => {
  // A server that has just been started grants nothing before it has been up for a ttl.
  if (process.env["QUIET"] === undefined) console.error(error);
});

console.log("campaigning");
await election.run(
  async (term) => {
    console.log(`leading with token ${term.token}`);
    const reports = fence.bind(term);
    while (!term.signal.aborted) {
      await reports.command("INCR", "count:{reports}");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    console.log("work stopped");
  },
  { signal: stop.signal },
);
console.log("resigned");
