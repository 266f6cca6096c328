/** Bully with real sockets: who wins, who takes over, and that a partition has two leaders. */
import { afterEach, describe, expect, it } from "vitest";
import { BullyBackend } from "../../src/backends/bully/backend.js";
import { Election } from "../../src/election/election.js";
import { BullyPeers } from "../support/bully-peers.js";
import type { Happening } from "../support/bully-peers.js";
import { freePorts } from "../support/free-ports.js";
import { until } from "../support/until.js";

const made: BullyPeers[] = [];

async function peers(count = 3): Promise<BullyPeers> {
  const prepared = await BullyPeers.prepare(count);
  made.push(prepared);
  return prepared;
}

afterEach(async () => {
  await Promise.all(made.splice(0).map((one) => one.stop()));
});

const leads = (of: BullyPeers, ...names: string[]): Promise<void> =>
  until(() => of.leaders().toSorted().join() === names.join(), 15_000);

function indexOf(all: readonly Happening[], peer: string, what: Happening["what"], from = 0): number {
  return all.findIndex((one, index) => index >= from && one.peer === peer && one.what === what);
}

describe("Bully", () => {
  it("the highest leads; killed, the next one does; back, it takes over after the lower one has stopped", async () => {
    const three = await peers();
    three.lingerMs = 150;
    for (const name of three.names) three.up(name);
    await leads(three, "n3");
    await three.kill("n3");
    await leads(three, "n2");
    const before = three.happenings.length;
    three.up("n3");
    await leads(three, "n3");
    const after = three.happenings.slice(before);
    const stopped = indexOf(after, "n2", "stopped");
    const begun = indexOf(after, "n3", "begin");
    expect(indexOf(after, "n2", "told")).toBeGreaterThanOrEqual(0);
    expect(stopped).toBeGreaterThan(indexOf(after, "n2", "told"));
    expect(begun).toBeGreaterThan(stopped);
    expect(after.slice(stopped).some(({ peer, what }) => peer === "n2" && what === "piece")).toBe(false);
    expect(after[begun]!.token > after[stopped]!.token).toBe(true);
  }, 40_000);

  it("says what happens: ELECTION, ANSWER, COORDINATOR", async () => {
    const two = await peers(2);
    two.up("n2", { preempt: false });
    await leads(two, "n2");
    two.up("n1");
    await until(() => two.lines.some((line) => line.includes("ANSWER to n1")), 10_000);
    await two.kill("n2");
    await leads(two, "n1");
    const text = two.lines.join("\n");
    expect(text).toMatch(/n2, "e": ELECTION: I am the highest/);
    expect(text).toMatch(/n2, "e": COORDINATOR to n1: I lead, number \d+/);
    expect(text).toMatch(/n1, "e": ELECTION to n2/);
    expect(text).toMatch(/n2, "e": ELECTION from n1; ANSWER to n1: I am higher/);
    expect(text).toMatch(/n1, "e": no ANSWER from n2/);
  }, 30_000);

  it("a partition has TWO LEADERS; when it heals one is left, and the work of the other has stopped", async () => {
    const three = await peers();
    for (const name of three.names) three.up(name);
    await leads(three, "n3");
    three.cut(["n3"], ["n1", "n2"]);
    await leads(three, "n2", "n3"); // both at the same moment: this is what Bully is
    const before = three.happenings.length;
    const survivor = three.happenings.findLast(({ peer }) => peer === "n3")!.token;
    three.heal();
    await leads(three, "n3");
    await until(() => indexOf(three.happenings, "n2", "stopped", before) >= 0, 10_000);
    const after = three.happenings.slice(before);
    const told = indexOf(after, "n2", "told");
    expect(after.slice(told).some(({ peer, what }) => peer === "n2" && what === "piece")).toBe(false);
    // The higher one was never interrupted.
    expect(after.filter(({ peer }) => peer === "n3").every(({ token }) => token === survivor)).toBe(true);
    expect(three.leaders()).toEqual(["n3"]);
  }, 40_000);

  it("preempt: false leaves a lower leader in peace", async () => {
    const two = await peers(2);
    two.up("n1", { preempt: false });
    await leads(two, "n1");
    two.up("n2", { preempt: false });
    await until(() => two.lines.some((line) => line.startsWith("n2")), 10_000);
    const from = two.happenings.length;
    await until(() => two.happenings.length > from + 60, 10_000);
    expect(two.leaders()).toEqual(["n1"]);
    await two.down("n1");
    await leads(two, "n2");
  }, 30_000);

  it("two processes with one id: both refuse, and say so", async () => {
    const two = await peers(3);
    two.up("n3");
    await leads(two, "n3");
    const [spare] = await freePorts(1);
    const twin = new BullyBackend(two.options("n3", { bind: `127.0.0.1:${spare}` }));
    two.up("n1");
    const election = new Election({ name: "e", id: "twin", backend: twin, ttlMs: 800, allowUnfenced: true });
    const said: string[] = [];
    election.on("error", ({ error }) => said.push(String(error)));
    const stop = new AbortController();
    const running = election.run(
      ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
      { signal: stop.signal },
    );
    await until(
      () => said.some((text) => text.includes('another process also says that it is "n3"')),
      15_000,
    );
    await until(() => !two.leaders().includes("n3"), 15_000);
    stop.abort();
    await running.catch(() => {});
    await election.close();
    await twin[Symbol.asyncDispose]();
  }, 30_000);
});
