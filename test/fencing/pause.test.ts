/**
 * The pause between check and act: a leader is stopped after `held` said yes and
 * before it writes; a successor writes; the old one goes on. Every resource must
 * refuse it, and tell it so.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { etcdClient, EtcdFence } from "../../src/backends/etcd/index.js";
import {
  FencedFile,
  fencedFetch,
  fenceHandler,
  Gate,
  MemoryFence,
  RecordFence,
} from "../../src/fencing/index.js";
import { deferred } from "../../src/kit/wait.js";
import { Segments } from "../../src/fencing/segments.js";
import { Election, memoryBackend, openBackend, StaleLeaderError, systemClock } from "../../src/index.js";
import type { RecordStore, Term } from "../../src/index.js";
import { backends } from "../support/backends.js";
import { TestProcess } from "../support/processes.js";
import { temporary } from "./rooms.js";

const TIMES = 50;
const PROCESSES = 5;
const WRITTEN = {
  append: "written",
  replace: "written",
  record: "written",
  check: "written",
  http: "written",
};
const STALE = "StaleLeaderError stale-leader";

const cleanups: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

interface Service {
  readonly url: string;
  readonly log: bigint[];
}

async function service(): Promise<Service> {
  const log: bigint[] = [];
  const gate = new Gate();
  const server = createServer(
    fenceHandler(gate, (request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (text: string) => (body += text));
      request.on("end", () => {
        log.push(BigInt(body));
        response.end();
      });
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, log };
}

/** On etcd the leader's own key guards too. */
function etcdGuard(url: string, name: string) {
  if (!url.startsWith("etcd:")) return undefined;
  const client = etcdClient({ endpoints: url.slice("etcd://".length).split(","), env: {} });
  cleanups.push(async () => client[Symbol.asyncDispose]());
  const fence = new EtcdFence({ client, election: name });
  const key = `${name}-data`;
  return {
    commit: (term: Term) => term.guard(fence).put(key, `${term.token}`),
    read: async () => {
      const limits = { signal: new AbortController().signal, limitMs: 5_000 };
      const question = { kind: "range", key } as const;
      return (await client.transaction({ when: [], then: [question], otherwise: [] }, limits)).results[0]
        ?.kvs[0]?.value;
    },
  };
}

/** One stopped leader after another, `rounds` times; the successor is in this process. */
async function rounds(url: string, name: string, count: number): Promise<number> {
  const directory = join(await temporary(), "file");
  const http = await service();
  const backend = await openBackend(url);
  cleanups.push(async () => backend[Symbol.asyncDispose]());
  // Long: it resigns when it has done its part, and this machine may be slow in between.
  const successor = new Election({ name, backend, ttlMs: 30_000, id: "successor" });
  cleanups.push(() => successor.close());
  const file = new FencedFile({ path: directory });
  const replaced = new FencedFile({ path: `${directory}-replaced` });
  const record = new RecordFence({ records: backend.records, name });
  const stopped = new TestProcess("test/fencing/programs/stopped-leader.ts", [
    url,
    name,
    directory,
    http.url,
    `${count}`,
  ]);
  cleanups.push(() => stopped.end());
  const etcd = etcdGuard(url, name);
  let refused = 0;
  for (let round = 1; round <= count; round++) {
    const stop = await stopped.line((line) => line["event"] === "stopping" && line["round"] === round);
    expect(stop["before"]).toEqual({ ...WRITTEN, ...(etcd && { etcd: "written" }) });
    const old = BigInt(stop["token"] as string);
    const term = await successor.campaign();
    expect(term.token).toBeGreaterThan(old);
    await term.guard(file).append(`${term.token}\n`);
    await term.guard(replaced).replace(`${term.token}`);
    await term.guard(record).write((data) => `${data ?? ""}${term.token}\n`);
    await fencedFetch(term)(http.url, { method: "POST", body: `${term.token}` });
    await etcd?.commit(term);
    stopped.signal("SIGCONT");
    const resumed = await stopped.line((line) => line["event"] === "resumed" && line["round"] === round);
    expect(resumed).toMatchObject({
      heldAfter: false,
      after: {
        append: STALE,
        replace: STALE,
        record: STALE,
        check: STALE,
        http: STALE,
        ...(etcd && { etcd: STALE }),
      },
    });
    refused++;
    // What each resource holds ends with the successor: the refused write left no trace.
    expect((await replaced.read())?.data.toString()).toBe(`${term.token}`);
    expect(http.log.at(-1)).toBe(term.token);
    expect(await etcd?.read()).toBe(etcd && `${term.token}`);
    for (const text of [(await file.read())!.data.toString(), (await record.read())!.data!]) {
      const tokens = text.trim().split("\n").map(BigInt);
      expect(tokens.at(-1)).toBe(term.token);
      expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
    }
    await term.resign();
  }
  await stopped.exited;
  expect(stopped.stderr).toBe("");
  return refused;
}

describe.each(backends)("SIGSTOP between held and the write, elections on $name", (room) => {
  test(
    `${TIMES} times: file (append, replace), records (write, check), HTTP`,
    { timeout: 240_000 },
    async () => {
      const url = await room.open();
      const each = TIMES / PROCESSES;
      const counts = await Promise.all(
        Array.from({ length: PROCESSES }, (_, n) =>
          rounds(url, `pause-${systemClock.uniqueId()}-${n}`, each),
        ),
      );
      expect(counts.reduce((a, b) => a + b)).toBe(TIMES);
    },
  );
});

test(`${TIMES} times in one process: memory and gate`, async () => {
  const backend = memoryBackend();
  const fence = new MemoryFence();
  const gate = new Gate();
  for (let round = 0; round < TIMES; round++) {
    const [a, b] = ["a", "b"].map((id) => new Election({ name: "e", backend, id, ttlMs: 2000 }));
    const old = await a!.campaign();
    expect(old.held).toBe(true); // checked …
    await old.resign();
    const term = await b!.campaign();
    await term.guard(fence).check();
    await term.guard(gate).run(() => {});
    // … and acted, on what was true then.
    expect(() => fence.check(old.token)).toThrow(StaleLeaderError);
    await expect(gate.run(old.token, () => expect.fail("must not run"))).rejects.toThrow(StaleLeaderError);
    await expect(old.guard(gate).run(() => {})).rejects.toMatchObject({ code: "not-leader" });
    await term.resign();
    await Promise.all([a!.close(), b!.close()]);
  }
});

test(`${TIMES} times: stopped within its act, at the gate`, async () => {
  for (let round = 0; round < TIMES; round++) {
    const gate = new Gate();
    const acts: string[] = [];
    const [begun, told, goOn] = [deferred<void>(), deferred<void>(), deferred<void>()];
    const old = gate.run(33n, async ({ signal }) => {
      signal.addEventListener("abort", () => told.resolve());
      begun.resolve();
      await goOn.promise;
      acts.push("old");
    });
    await begun.promise;
    const newer = gate.run(34n, () => void acts.push("new"));
    await told.promise; // a newer one has come, and waits
    await expect(gate.run(33n, () => void acts.push("old again"))).rejects.toThrow(StaleLeaderError);
    expect(acts).toEqual([]);
    goOn.resolve();
    await Promise.all([old, newer]);
    expect(acts).toEqual(["old", "new"]);
  }
});

test(`${TIMES} times: stopped within the record's own read and write`, async () => {
  for (let round = 0; round < TIMES; round++) {
    const { records } = memoryBackend();
    const newer = new RecordFence({ records, name: "r" });
    let between = async (): Promise<void> => {};
    const slow: RecordStore = {
      read: async (key, options) => {
        const entry = await records.read(key, options);
        if (round % 2 === 0) await between(); // on the way back from the store, or on the way there
        return entry;
      },
      write: async (key, expected, record, options) => {
        await between();
        return records.write(key, expected, record, options);
      },
      [Symbol.asyncDispose]: () => records[Symbol.asyncDispose](),
    };
    between = async () => {
      between = async () => {};
      await newer.write(34n, "new");
    };
    await expect(new RecordFence({ records: slow, name: "r" }).write(33n, "old")).rejects.toMatchObject({
      highest: 34n,
    });
    expect(await newer.read()).toEqual({ token: 34n, data: "new" });
  }
});

test(`${TIMES} times: stopped within the file's own look and link, for so long that its number was removed`, async () => {
  const root = await temporary();
  for (let round = 0; round < TIMES; round++) {
    const path = join(root, `f${round}`);
    const [file, segments] = [new FencedFile({ path }), new Segments(path, systemClock)];
    await file.append(33n, "old");
    const seen = await segments.newest();
    // None to many newer records: with many, the number it is about to take has been used and removed.
    const writes = round % 2 === 0 ? 1 + (round % 5) : 18;
    for (let write = 1; write <= writes; write++) await file.replace(34n, `new ${write}`);
    expect(await segments.add(seen, { token: 33n, base: 1 }, Buffer.from("stale"))).toBe(false);
    expect(await file.read()).toMatchObject({ token: 34n, data: Buffer.from(`new ${writes}`) });
    await expect(file.append(33n, "stale")).rejects.toThrow(StaleLeaderError);
  }
});
