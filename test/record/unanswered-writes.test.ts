import { describe, expect, it } from "vitest";
import type { Backend, Candidacy } from "../../src/seam/backend.js";
import type { RecordStore } from "../../src/seam/table.js";
import { Election } from "../../src/election/election.js";
import { Lock } from "../../src/lock/lock.js";
import { recordBackend } from "../../src/record/backend.js";
import { textLeases } from "../../src/record/codec.js";
import type { LeaseRecord } from "../../src/record/lease.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { TableServer } from "../support/table.js";

const TTL_MS = 60_000;
const ATTEMPT_MS = 1_000;
const never = new AbortController().signal;

function stand(candidate: string): Candidacy {
  return { election: "e", candidate, value: candidate, ttlMs: TTL_MS, retryMs: 500, attemptMs: ATTEMPT_MS };
}

interface Scene {
  readonly clock: VirtualClock;
  readonly server: TableServer;
  readonly leases: RecordStore<LeaseRecord>;
  open(leases?: RecordStore<LeaseRecord>): Backend;
}

function scene(): Scene {
  const clock = new VirtualClock();
  const server = new TableServer();
  const leases = textLeases(server.texts("leases"));
  const open = (store = leases): Backend =>
    recordBackend({
      name: "table",
      guarantees: {
        exclusion: "linearizable",
        expiry: "observer",
        token: "record",
        succession: "unordered",
        ttl: { minMs: 100, stepMs: 1 },
      },
      leases: store,
      records: server.texts("records"),
      clock,
    });
  return { clock, server, leases, open };
}

/** The first write is carried out `lateMs` after it was sent, and nobody hears of it. */
function unheard(
  { clock, leases }: Scene,
  lateMs: number,
  sent: () => void,
): { readonly store: RecordStore<LeaseRecord>; readonly arrived: Promise<void> } {
  let arrive = (): void => {};
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  let first = true;
  const store: RecordStore<LeaseRecord> = {
    read: (key, options) => leases.read(key, options),
    write: (key, expected, record, options) => {
      if (!first) return leases.write(key, expected, record, options);
      first = false;
      clock.after(lateMs, () => void leases.write(key, expected, record, { signal: never }).then(arrive));
      sent();
      return new Promise(() => {});
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return { store, arrived };
}

async function giveUp(it: Scene, lateMs: number): Promise<{ backend: Backend; arrived: Promise<void> }> {
  const change = new AbortController();
  const { store, arrived } = unheard(it, lateMs, () => change.abort(new Error("changed its mind")));
  const backend = it.open(store);
  await expect(backend.campaign(stand("hasty"), { wait: true, signal: change.signal })).rejects.toThrow(
    "changed its mind",
  );
  return { backend, arrived };
}

/** In small steps: the table answers in real time, if at once. */
async function advance(clock: VirtualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    await clock.advance(50);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("a candidacy given up while its acquiring write is on the way", () => {
  it.each([0, ATTEMPT_MS / 2])("leaves no lease that others would wait for: %d ms late", async (lateMs) => {
    const it = scene();
    const { backend, arrived } = await giveUp(it, lateMs);
    await advance(it.clock, ATTEMPT_MS);
    await arrived;
    const left = await it.leases.read("e", { signal: never });
    expect(left?.record.holder).toBeNull();
    const next = await it.open().campaign(stand("next"), { wait: false, signal: never });
    expect(next?.token).toBeGreaterThan(left!.version);
    await backend[Symbol.asyncDispose]();
  });

  it("takes nothing back from those who came after it", async () => {
    const it = scene();
    await it
      .open()
      .campaign(stand("first"), { wait: false, signal: never })
      .then((hold) => hold!.release({ signal: never }));
    const { backend } = await giveUp(it, ATTEMPT_MS / 2);
    const next = await it.open().campaign(stand("next"), { wait: false, signal: never });
    await it.clock.advance(2 * ATTEMPT_MS);
    expect((await it.leases.read("e", { signal: never }))?.record.holder).toBe("next");
    expect(await next!.renew({ signal: never })).not.toBe("lost");
    await backend[Symbol.asyncDispose]();
  });

  it("is done with before its backend is closed, even if the store never answers again", async () => {
    const it = scene();
    const { backend } = await giveUp(it, 10 * ATTEMPT_MS);
    let closed = false;
    const closing = backend[Symbol.asyncDispose]().then(() => {
      closed = true;
    });
    await it.clock.advance(ATTEMPT_MS / 2);
    expect(closed).toBe(false);
    await it.clock.advance(ATTEMPT_MS);
    await closing;
  });
});

describe("a single attempt whose acquiring write is not answered", () => {
  const timing = { ttlMs: TTL_MS, retryMs: 500, attemptMs: ATTEMPT_MS };

  /** Lets time pass until the attempt rejects with `timeout`: whether the write was carried out is not known. */
  async function timesOut(clock: VirtualClock, attempt: Promise<unknown>): Promise<void> {
    const error = attempt.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    await advance(clock, 1.5 * ATTEMPT_MS);
    expect(await error).toMatchObject({ code: "timeout" });
  }

  const attempts: [string, (it: Scene, backend: Backend) => Promise<void>][] = [
    [
      "backend.campaign without waiting",
      async ({ clock }, backend) => {
        await timesOut(clock, backend.campaign(stand("hasty"), { wait: false, signal: never }));
      },
    ],
    [
      "Election.tryCampaign",
      async ({ clock }, backend) => {
        const election = new Election({ name: "e", backend, clock, ...timing });
        await timesOut(clock, election.tryCampaign());
        await election.close();
      },
    ],
    [
      "Lock.tryAcquire",
      async ({ clock }, backend) => {
        const lock = new Lock({ name: "e", backend, clock, ...timing });
        await timesOut(clock, lock.tryAcquire());
        await lock.close();
      },
    ],
  ];

  it.each(attempts)("leaves no record behind: %s", async (_, attempt) => {
    const it = scene();
    const { store, arrived } = unheard(it, 0, () => {});
    const backend = it.open(store);
    await attempt(it, backend);
    await advance(it.clock, ATTEMPT_MS);
    await arrived;
    expect((await it.leases.read("e", { signal: never }))?.record.holder).toBeNull();
    const next = await it.open().campaign(stand("next"), { wait: false, signal: never });
    expect(next).not.toBeNull();
    await backend[Symbol.asyncDispose]();
  });

  it("does not disturb a second attempt of the same candidate", async () => {
    const it = scene();
    const { store, arrived } = unheard(it, 0, () => {});
    const backend = it.open(store);
    await timesOut(it.clock, backend.campaign(stand("hasty"), { wait: false, signal: never }));
    await arrived;
    const second = await backend.campaign(stand("hasty"), { wait: false, signal: never });
    await advance(it.clock, 2 * ATTEMPT_MS);
    expect((await it.leases.read("e", { signal: never }))?.record.holder).toBe("hasty");
    expect(await second!.renew({ signal: never })).not.toBe("lost");
    await backend[Symbol.asyncDispose]();
  });
});
