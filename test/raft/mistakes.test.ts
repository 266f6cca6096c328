/** What people get wrong: clocks, keys, directories, ports, names. Each is either harmless or refused in words that help. */
import { randomBytes } from "node:crypto";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { RaftBackend } from "../../src/backends/raft/backend.js";
import { NodeJournalDisk } from "../../src/backends/raft/node-disk.js";
import type { RaftOptions } from "../../src/backends/raft/index.js";
import { checkOptions } from "../../src/backends/raft/options.js";
import { systemClock } from "../../src/kit/clock.js";
import type { Hold } from "../../src/seam/backend.js";
import { clockAhead } from "../support/clock-ahead.js";
import { freePorts } from "../support/free-ports.js";
import { KEY, RaftCluster } from "../support/raft-cluster.js";
import { until } from "../support/until.js";

const { signal } = new AbortController();
const after: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of after.splice(0).toReversed()) await end();
});

async function cluster(): Promise<RaftCluster> {
  const made = await RaftCluster.start();
  after.push(() => made.stop());
  return made;
}

/** A process that is started besides those of the cluster. */
async function another(of: RaftCluster, self: string, more: Partial<RaftOptions>): Promise<RaftBackend> {
  const [port] = await freePorts(1);
  const backend = of.backend(self, { bind: `127.0.0.1:${port}`, ...more });
  after.push(async () => backend[Symbol.asyncDispose]());
  return backend;
}

function win(backend: RaftBackend, candidate: string, ttlMs = 600): Promise<Hold | null> {
  const candidacy = { election: "e", candidate, value: "", ttlMs, retryMs: 50, attemptMs: 5_000 };
  return backend.campaign(candidacy, { wait: true, signal });
}

describe("clocks", () => {
  it("one voter's clock is ten years ahead at the first start: there are leaders all the same", async () => {
    const three = await RaftCluster.prepare();
    after.push(() => three.stop());
    const ahead = 10 * 365 * 86_400_000;
    const clock = clockAhead(ahead);
    const voters = three.names.map((name) => three.backend(name, name === "n1" ? { clock } : {}));
    after.push(() => Promise.all(voters.map((voter) => voter[Symbol.asyncDispose]())));
    await Promise.all(voters.map((voter) => voter.start()));
    await until(() => voters.every(({ unfit }) => unfit === undefined), 15_000);
    for (const [index, voter] of voters.entries()) {
      const hold = await win(voter, `c${index}`);
      expect(hold!.token > BigInt(Math.floor(systemClock.wall() + ahead / 2))).toBe(true);
      await hold!.release({ signal });
    }
  }, 30_000);
});

describe("keys", () => {
  const peers = ["n1@127.0.0.1:1", "n2@127.0.0.1:2", "n3@127.0.0.1:3"];
  async function secret(bytes: Uint8Array | string): Promise<Buffer> {
    const directory = await mkdtemp(join(tmpdir(), "conclave-key-"));
    after.push(() => rm(directory, { recursive: true }));
    const keyFile = join(directory, "raft.key");
    await writeFile(keyFile, bytes);
    return checkOptions({ peers, keyFile }, {}).secret;
  }

  it("a file of random bytes is taken as it is, a text without its line end", async () => {
    const random = Buffer.concat([Buffer.of(0xff, 0x20), randomBytes(32), Buffer.of(0x0a)]);
    expect(await secret(random)).toEqual(random);
    const text = "0123456789abcdef".repeat(4);
    for (const end of ["", "\n", "\r\n", " \n\n"]) expect((await secret(text + end)).toString()).toBe(text);
  });

  it("a short one, and an empty one, are refused", async () => {
    await expect(secret("short\n")).rejects.toThrow(/in the key file has 5 bytes; use at least 32.*openssl/);
    await expect(secret("")).rejects.toThrow(/has 0 bytes/);
  });
});

describe("directories", () => {
  it("a journal that was copied from another voter is refused", async () => {
    const three = await cluster();
    await three.down("n2");
    await three.wipe("n2");
    await cp(three.dir("n1"), three.dir("n2"), { recursive: true });
    await expect(three.up("n2")).rejects.toThrow(
      /the journal belongs to voter "n1"; give this voter, "n2", a directory of its own/,
    );
  }, 20_000);

  it("two voters on one directory: the second is refused, and the first goes on", async () => {
    const three = await cluster();
    await three.down("n2");
    await expect((await another(three, "n2", { dir: `${three.dir("n1")}/../n1/.` })).start()).rejects.toThrow(
      /directory of another voter/,
    );
    expect(await win(three.voter("n1"), "a")).not.toBeNull();
  }, 20_000);
});

describe("two processes on one directory", () => {
  const bytes = (text: string): Uint8Array => Buffer.from(text);
  async function disks(): Promise<[NodeJournalDisk, NodeJournalDisk, string]> {
    const directory = await mkdtemp(join(tmpdir(), "conclave-journal-"));
    const made = ["a", "b"].map((name) => new NodeJournalDisk(directory, `journal.${name}.new`));
    after.push(async () => {
      for (const disk of made) await disk.close();
      await rm(directory, { recursive: true });
    });
    return [made[0]!, made[1]!, directory];
  }

  it("the one that was there notices with its next write", async () => {
    const [old, young, directory] = await disks();
    await old.load();
    await old.append(bytes("one"));
    expect(Buffer.from((await young.load())!).toString()).toBe("one");
    await young.replace(bytes("one"));
    await expect(old.append(bytes("two"))).rejects.toThrow(/another process writes to .*journal/);
    await expect(old.replace(bytes("two"))).rejects.toThrow(/another process writes to .*journal/);
    await young.append(bytes(", three"));
    expect(await readFile(join(directory, "journal"), "utf8")).toBe("one, three");
  });

  it("the one that starts notices what was written since it has read", async () => {
    const [old, young] = await disks();
    await old.load();
    await old.append(bytes("one"));
    await young.load();
    await old.append(bytes("two"));
    await expect(young.replace(bytes("one"))).rejects.toThrow(/another process writes to .*journal/);
  });

  it("the one that was there notices when it is asked, also where it has nothing to write", async () => {
    const [old, young] = await disks();
    await old.load();
    await old.check();
    await old.append(bytes("one"));
    await old.check();
    await young.load();
    await old.check();
    await young.replace(bytes("one"));
    await expect(old.check()).rejects.toThrow(/another process writes to .*journal/);
    await young.check();
  });

  it("the one that starts notices that the journal was written anew since it has read", async () => {
    const [old, young] = await disks();
    await old.load();
    await old.append(bytes("one"));
    await young.load();
    await old.replace(bytes("anew"));
    await old.append(bytes(", two"));
    await expect(young.replace(bytes("one"))).rejects.toThrow(/another process writes to .*journal/);
  });

  it("of two that start at once, one goes on, and nothing is left about", async () => {
    const [one, other, directory] = await disks();
    const both = [one, other];
    await Promise.all(both.map((disk) => disk.load()));
    const ends = await Promise.allSettled(
      both.map(async (disk) => {
        await disk.append(bytes("birth"));
        await disk.append(bytes(", start"));
      }),
    );
    expect(ends.filter(({ status }) => status === "fulfilled").length).toBeLessThan(2);
    expect(await readdir(directory)).toEqual(["journal"]);
  });

  it("a directory that is removed under a voter: it takes no part, and says so", async () => {
    const three = await cluster();
    await three.wipe("n1");
    await (await win(three.voter("n2"), "a"))!.release({ signal });
    await until(
      () => /another process writes to .*or has removed it/.test(three.voter("n1").unfit ?? ""),
      5_000,
    );
    await three.down("n1");
    const back = await three.up("n1");
    await until(() => back.unfit === undefined, 15_000);
  }, 30_000);
});

describe("ports and names", () => {
  it("a port that is taken is named", async () => {
    const three = await RaftCluster.prepare();
    after.push(() => three.stop());
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(three.ports[0], "127.0.0.1", resolve));
    after.push(() => new Promise((resolve) => server.close(resolve)));
    await expect(three.up("n1")).rejects.toThrow(
      new RegExp(`cannot listen on 127.0.0.1:${three.ports[0]}: .*EADDRINUSE`),
    );
  });

  it("the order of the list does not matter", async () => {
    const three = await cluster();
    const backend = new RaftBackend({ peers: three.peers.toReversed(), key: KEY });
    after.push(async () => backend[Symbol.asyncDispose]());
    expect(await win(backend, "a")).not.toBeNull();
  }, 20_000);

  it("two processes are the same voter: neither takes part any more, and all say why", async () => {
    const three = await cluster();
    const hold = await win(three.voter("n1"), "leader");
    const twin = await another(three, "n1", { dir: join(three.directory, "elsewhere") });
    const words = /two processes say that they are voter "n1".*stop both/;
    await twin.start();
    let lost: unknown;
    void win(twin, "other").catch((error: unknown) => (lost = error));
    await until(async () => {
      await hold!.renew({ signal }).catch((error: unknown) => (lost = error));
      return words.test(three.voter("n1").unfit ?? "") && words.test(twin.unfit ?? "");
    }, 20_000);
    expect(String(lost)).toMatch(/majority|answer|reached|part/);
    await until(
      () => three.lines.filter((line) => words.test(line)).some((line) => line.startsWith('voter "n2"')),
      5_000,
    );
    // The others go on; and after both were stopped, one can come back without a past.
    expect(await win(three.voter("n2"), "next")).not.toBeNull();
    await three.down("n1");
    await twin[Symbol.asyncDispose]();
    await three.wipe("n1");
    const back = await three.up("n1");
    await until(() => back.unfit === undefined, 15_000);
  }, 60_000);
});
