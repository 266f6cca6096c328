/** Ending the term of a leader that hangs: at once it cannot renew, and nobody leads before it has stopped. */
import { describe, expect, it } from "vitest";
import { Cli, conclave, inProcess, scratch } from "./process.js";

const TTL_MS = 3_000;

describe("conclave evict", () => {
  it("bars a leader that is stopped, and its successor waits until that one's lease is over", async () => {
    const at = ["--lock-dir", scratch()];
    const hung = new Cli(["run", "jobs", "--id", "a", "--ttl", `${TTL_MS}ms`, "--log", "json", ...at]);
    const led = await hung.event("elected");
    const next = new Cli(["run", "jobs", "--id", "b", "--ttl", `${TTL_MS}ms`, "--log", "json", ...at]);
    await next.event("leader");
    hung.kill("SIGSTOP");
    const before = performance.now();
    const { code, out } = await conclave(["evict", "jobs", "--json", ...at]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ event: "evicted", candidate: led.candidate, token: led.token });
    // The process that evicted has ended: files tell that, but it was not the leader.
    const after = await next.event("elected");
    expect(performance.now() - before).toBeGreaterThanOrEqual(TTL_MS * 0.95);
    expect(BigInt(after.token!)).toBeGreaterThan(BigInt(led.token!));
    hung.kill("SIGCONT");
    expect(await hung.event("ended")).toMatchObject({ token: led.token });
  });

  it("tells a leader that works well at its next renewal", async () => {
    const at = ["--lock-dir", scratch()];
    const well = new Cli(["run", "jobs", "--ttl", "3s", "--id", "a", "--log", "json", ...at]);
    const led = await well.event("elected");
    const { out } = await conclave(["evict", "jobs", "--candidate", led.candidate!, ...at]);
    expect(out).toContain(`evicted ${led.candidate}, leader of "jobs"`);
    expect(out).toContain("in 3s at the latest");
    expect(await well.event("ended")).toMatchObject({ token: led.token });
    expect(await conclave(["leader", "jobs", ...at])).toMatchObject({ code: 1 });
    expect(await conclave(["evict", "jobs", ...at])).toMatchObject({ code: 1 });
  });

  it("with --dead frees leadership at once, and only that of the candidate that is named", async () => {
    const at = ["--lock-dir", scratch()];
    const one = new Cli(["run", "jobs", "--ttl", "60s", "--id", "a", "--log", "json", ...at]);
    const led = await one.event("elected");
    one.kill("SIGSTOP"); // here it stands for a process whose death cannot be seen from this machine
    const other = await conclave(["evict", "jobs", "--candidate", "someone", "--dead", ...at]);
    expect(other).toMatchObject({
      code: 1,
      out: `${led.candidate} leads "jobs", not someone: nothing was changed`,
    });
    const next = new Cli(["run", "jobs", "--ttl", "60s", "--id", "b", "--log", "json", ...at]);
    await next.event("leader");
    const { code, out } = await conclave(["evict", "jobs", "--dead", "--json", ...at]);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ event: "evicted", waitMs: 0 });
    await next.event("elected");
  });

  it("says that nobody leads, and refuses what makes no sense", async () => {
    const at = ["--lock-dir", scratch()];
    expect(await inProcess(["evict", "jobs", ...at])).toMatchObject({ code: 1 });
    expect(await inProcess(["evict", "", ...at])).toMatchObject({ code: 2 });
    expect(await inProcess(["evict"])).toMatchObject({ code: 2 });
    const sessions = await inProcess(["evict", "jobs", "--backend", "etcd://127.0.0.1:1"]);
    expect(sessions).toMatchObject({ code: 2 });
    expect(sessions.err).toContain("--dead");
  });
});
