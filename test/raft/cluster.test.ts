/** Voters with real sockets and files: first start, restart, lost and damaged disks, one voter down, lists that differ. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { openBackend } from "../../src/open.js";
import { raft } from "../../src/backends/raft/entry.js";
import { raftBackend } from "../../src/backends/raft/index.js";
import type { RaftBackend } from "../../src/backends/raft/backend.js";
import type { Hold } from "../../src/seam/backend.js";
import { until } from "../support/until.js";
import { KEY, RaftCluster } from "../support/raft-cluster.js";

const clusters: RaftCluster[] = [];
const backends: AsyncDisposable[] = [];

async function cluster(count = 3): Promise<RaftCluster> {
  const made = await RaftCluster.start(count);
  clusters.push(made);
  return made;
}

function client(of: RaftCluster): RaftBackend {
  const made = of.backend();
  backends.push(made);
  return made;
}

afterEach(async () => {
  await Promise.all(backends.splice(0).map((backend) => backend[Symbol.asyncDispose]()));
  await Promise.all(clusters.splice(0).map((one) => one.stop()));
});

const signal = new AbortController().signal;
let nth = 0;

async function win(
  backend: RaftBackend,
  election = "e",
  ttlMs = 600,
  candidate = `c${nth++}`,
): Promise<Hold> {
  const candidacy = { election, candidate, value: "v", ttlMs, retryMs: 50, attemptMs: 1_000 };
  for (let tries = 0; ; tries++) {
    try {
      return (await backend.campaign(candidacy, { wait: true, signal }))!;
    } catch (error) {
      if (tries > 40) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

describe("a cluster of peers", () => {
  it("elects with one of three down, not with two, and again when one is back", async () => {
    const three = await cluster();
    const first = await win(three.voter("n1"));
    await first.release({ signal });
    await three.down("n3");
    const second = await win(three.voter("n2"));
    expect(second.token > first.token).toBe(true);
    await three.down("n2");
    await expect(second.renew({ signal: AbortSignal.abort() })).rejects.toThrow(/abort/);
    await expect(
      three
        .voter("n1")
        .campaign(
          { election: "e", candidate: "x", value: "", ttlMs: 600, retryMs: 50, attemptMs: 300 },
          { wait: false, signal },
        ),
    ).rejects.toThrow(/majority|answer/);
    await three.up("n2");
    const third = await win(three.voter("n1"));
    expect(third.token > second.token).toBe(true);
  }, 30_000);

  it("all stopped and started again: terms go on, records are there", async () => {
    const three = await cluster();
    const hold = await win(three.voter("n1"), "e", 300);
    const entry = await three.voter("n2").records.write("k", null, "kept", { signal });
    for (const name of three.names) await three.down(name);
    for (const name of three.names) await three.up(name);
    expect(await three.voter("n3").records.read("k", { signal })).toMatchObject({
      version: entry!.version,
      record: "kept",
    });
    expect((await win(three.voter("n3"))).token > hold.token).toBe(true);
  }, 30_000);

  it("a voter that lost its disk rejoins when all others are up, is silent for the lease, and not before", async () => {
    const three = await cluster();
    const hold = await win(three.voter("n1"), "e", 1_500);
    await three.voter("n1").records.write("k", null, "kept", { signal });
    await three.down("n3");
    await three.wipe("n3");
    await three.down("n2");
    const lost = await three.up("n3");
    const waiting = (): string[] =>
      three.lines.filter((line) => line.startsWith('voter "n3": this voter has'));
    await until(() => waiting().length > 0, 10_000);
    expect(waiting()[0]).toMatch(/no journal and waits for n2: .*all other voters must answer once$/);
    expect(lost.unfit).toMatch(/no journal and waits for n2/);
    await three.up("n2");
    await until(() => lost.unfit === undefined, 15_000);
    expect(waiting()).toHaveLength(1);
    await hold.release({ signal });
    expect((await win(lost)).token > hold.token).toBe(true);
    expect(await lost.records.read("k", { signal })).toMatchObject({ record: "kept" });
  }, 40_000);

  it("two lost disks at once: nobody votes until an operator acts; all three: tokens still rise", async () => {
    const three = await cluster();
    const hold = await win(three.voter("n1"), "e", 300);
    for (const name of ["n2", "n3"]) {
      await three.down(name);
      await three.wipe(name);
    }
    await Promise.all([three.up("n2"), three.up("n3")]);
    await until(() => three.voter("n2").unfit?.includes("some voters have a past") === true, 10_000);
    await until(() => three.voter("n3").unfit?.includes("waits for all other voters") === true, 10_000);
    await expect(
      client(three).campaign(
        { election: "e", candidate: "x", value: "", ttlMs: 600, retryMs: 50, attemptMs: 500 },
        { wait: false, signal },
      ),
    ).rejects.toThrow(/too few voters take part|majority/);
    for (const name of three.names) {
      await three.down(name);
      await three.wipe(name);
    }
    await Promise.all(three.names.map((name) => three.up(name)));
    await three.ready();
    expect((await win(client(three))).token > hold.token).toBe(true);
  }, 40_000);

  it("a journal that is damaged in the middle: the voter says so and does not start", async () => {
    const three = await cluster();
    for (let i = 0; i < 3; i++) await (await win(three.voter("n1"))).release({ signal });
    await three.down("n2");
    const path = join(three.dir("n2"), "journal");
    const bytes = await readFile(path);
    bytes[40]! ^= 1;
    await writeFile(path, bytes);
    await expect(three.up("n2")).rejects.toThrow(/damaged in the middle.*takes no part/);
    await (await win(three.voter("n1"))).release({ signal });
  }, 30_000);

  it("a process with another list or another key is refused, and told why", async () => {
    const three = await cluster();
    const other = raftBackend({ peers: [...three.peers.slice(0, 2), "n9@127.0.0.1:9"], key: KEY });
    const wrong = raftBackend({ peers: three.peers, key: "x".repeat(40) });
    backends.push(other, wrong);
    const candidacy = { election: "e", candidate: "x", value: "", ttlMs: 600, retryMs: 50, attemptMs: 800 };
    await expect(other.campaign(candidacy, { wait: false, signal })).rejects.toThrow(
      /another list of voters.*n9@127/,
    );
    await expect(wrong.campaign(candidacy, { wait: false, signal })).rejects.toThrow(/same key/);
  }, 20_000);

  it("five voters: two down, still one leader", async () => {
    const five = await cluster(5);
    await five.down("n4");
    await five.down("n5");
    const holds = await Promise.all(
      ["n1", "n2", "n3"].map((name) =>
        five
          .voter(name)
          .campaign(
            { election: "e", candidate: name, value: "", ttlMs: 5_000, retryMs: 50, attemptMs: 3_000 },
            { wait: false, signal },
          ),
      ),
    );
    expect(holds.filter((hold) => hold !== null)).toHaveLength(1);
  }, 30_000);
});

it("a URL names all voters where people are told where elections live", async () => {
  const list = "n1@127.0.0.1:7401,n2@127.0.0.1:7402,n3@127.0.0.1:7403";
  expect(await raft.where?.(new URL(`raft://${list}?self=n1&dir=/x`))).toBe(list);
});

describe("what is refused before anything is done", () => {
  const list = "n1@127.0.0.1:7401,n2@127.0.0.1:7402,n3@127.0.0.1:7403";
  it.each([
    [`raft://${list}?self=n1`, /needs a directory/],
    [`raft://${list}?self=n4&dir=/tmp/x`, /not in the list; it must be one of n1, n2, n3/],
    [`raft://${list}`, /need a shared key.*openssl/],
    [
      `raft://n1@10.0.0.1:1,n2@127.0.0.1:2,n3@127.0.0.1:3?insecure=true`,
      /only on this machine, but 10.0.0.1:1/,
    ],
    [`raft://n1@h:1,n2@h:2?insecure=true`, /three or five/],
    [`raft://n1@h:1,n1@h:2,n3@h:3`, /same name/],
    [`raft://h:1,n2@h:2,n3@h:3`, /no voter; write name@host:port/],
    [`raft://${list}?key-file=/nowhere/key`, /key file cannot be read/],
    [`raft://${list}?kee=x`, /"kee" means nothing/],
    ["raft://", /write raft:/],
  ])("%s", async (url, message) => {
    await expect(openBackend(url)).rejects.toThrow(message);
  });
});
