/** One election with `consul lock`: never both, and each sees who the other is. Long: sixty handovers each way. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { consulElection, CountingSend } from "../support/consul-elections.js";
import { ConsulServer, hasConsul } from "../support/consul-server.js";
import { until } from "../support/until.js";

const ROUNDS = process.env["CONCLAVE_LONG"] === "1" ? 60 : 3;

/** `consul lock`, holding for as long as it is let. */
class Peer {
  readonly child: ChildProcess;
  held = false;

  constructor(server: ConsulServer, prefix: string) {
    this.child = server.command("lock", "-child-exit-code", prefix, "echo held; exec sleep 600");
    createInterface({ input: this.child.stdout! }).on("line", (line) => {
      if (line.includes("held")) this.held = true;
    });
  }

  /** It releases the lock and ends. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const gone = once(this.child, "exit");
    this.held = false;
    this.child.kill(signal);
    await gone;
  }
}

describe.skipIf(!hasConsul())("one election with consul lock", () => {
  let server: ConsulServer;
  beforeAll(async () => {
    server = await ConsulServer.start();
  });
  afterAll(() => server.stop());

  it(
    "handovers each way",
    async () => {
      await using ours = consulElection(server, "peer", { id: "ours" });
      let last = 0n;
      for (let round = 0; round < ROUNDS; round++) {
        const peer = new Peer(server, "test/peer");
        await until(() => peer.held);
        const theirs = await ours.leader();
        const [session] = (await server.api("GET", "/v1/kv/test/peer/.lock")) as { Session: string }[];
        expect(theirs?.candidate).toBe(session?.Session);
        expect(await ours.tryCampaign()).toBeNull();
        const campaign = ours.campaign();
        await peer.end("SIGTERM");
        const term = await campaign;
        expect(term.token).toBeGreaterThan(last);
        last = term.token;
        expect(await server.run("kv", "get", "test/peer/.lock")).toContain(ours.candidate);
        const next = new Peer(server, "test/peer");
        await new Promise((resolve) => setTimeout(resolve, 300));
        expect(next.held).toBe(false);
        expect(term.held).toBe(true);
        await term.resign();
        await until(() => next.held);
        expect(ours.leading).toBe(false);
        await next.end("SIGTERM");
      }
    },
    ROUNDS * 20_000,
  );

  it("a leader of ours that dies is followed by consul lock after its time", async () => {
    // Its session is not renewed any more: nothing is sent.
    let dead = false;
    const address = server.address;

    const counting = new CountingSend(address);
    const ours = consulElection(server, "dies", {
      consul: {
        send: (request, signal) =>
          dead ? Promise.reject(new Error("dead")) : counting.send(request, signal),
      },
    });
    const term = await ours.campaign();
    const peer = new Peer(server, "test/dies");
    dead = true;
    let endedAt = Infinity;
    void term.ended.then(() => (endedAt = performance.now()));
    await until(() => peer.held, 40_000);
    expect(endedAt).toBeLessThan(performance.now());
    expect(term.held).toBe(false);
    await peer.end("SIGTERM");
    dead = false;
    await ours.close();
  }, 60_000);
});
