/** Records that no candidate can have written: they may cost a ttl, and never an election. */
import { describe, expect, it } from "vitest";
import type { Backend } from "../../src/seam/backend.js";
import type { Entry, RecordStore } from "../../src/seam/table.js";
import { Election } from "../../src/election/election.js";
import { recordBackend } from "../../src/record/backend.js";
import { encodeLease, textLeases } from "../../src/record/codec.js";
import type { LeaseRecord } from "../../src/record/lease.js";
import { checkedEntry, UNKNOWN_HOLDER } from "../../src/record/lease.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { TableServer } from "../support/table.js";

const HUGE = 99_999_999_999_999_999_999n;
const TTL_MS = 3_000;
const never = new AbortController().signal;
const forged: LeaseRecord = { holder: "mallory", ttlMs: TTL_MS, value: "x", since: 1, token: HUGE };

describe("a token beyond the version of its record", () => {
  const entry = (record: Partial<LeaseRecord>): Entry<LeaseRecord> => ({
    version: 7n,
    record: { ...forged, ...record },
    renewalId: "m",
    expiresInMs: 5,
  });

  it.each(["mallory", null])("is not checkedEntry, whoever is named as the holder (%s)", (holder) => {
    for (const token of [8n, HUGE]) {
      const { record, ...rest } = checkedEntry(entry({ holder, token }));
      expect(record).toEqual({ holder: UNKNOWN_HOLDER, ttlMs: TTL_MS, value: "", since: 0, token: null });
      expect(rest).toEqual({ version: 7n, renewalId: "m", expiresInMs: 5 });
    }
  });

  it.each([null, 0n, 6n, 7n])("%s can be the token of version 7", (token) => {
    const genuine = entry({ token });
    expect(checkedEntry(genuine)).toBe(genuine);
  });
});

describe("a forged record", () => {
  interface Scene {
    readonly clock: VirtualClock;
    readonly backend: Backend;
    /** Overwrites the record, as anyone who may write to the store can. */
    forge(record: LeaseRecord): Promise<void>;
  }

  function scene(expiry: "observer" | "store"): Scene {
    const clock = new VirtualClock();
    const server = new TableServer();
    const leases: RecordStore<LeaseRecord> =
      expiry === "store" ? server.timedLeases(() => clock.now()) : textLeases(server.texts("leases"));
    const backend = recordBackend({
      name: "table",
      guarantees: {
        exclusion: "linearizable",
        expiry,
        token: "record",
        succession: "unordered",
        ttl: { minMs: 100, stepMs: 1 },
      },
      leases,
      records: server.texts("records"),
      clock,
    });
    const forge = async (record: LeaseRecord): Promise<void> => {
      const before = await leases.read("e", { signal: never });
      const written = await leases.write("e", before?.version ?? null, record, { signal: never });
      expect(written).not.toBeNull();
    };
    return { clock, backend, forge };
  }

  /** In small steps: the table answers in real time, if at once. */
  async function advance(clock: VirtualClock, ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 50) {
      await clock.advance(50);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  it.each(["observer", "store"] as const)(
    "with a huge token costs one ttl: no candidate refuses to lead, no observer is left behind (expiry by the %s)",
    async (expiry) => {
      const { clock, backend, forge } = scene(expiry);
      const election = new Election({ name: "e", backend, clock, ttlMs: TTL_MS });
      const errors: unknown[] = [];
      const seen: (string | undefined)[] = [];
      election.on("error", ({ error }) => errors.push(error));
      election.on("leader", ({ leader }) => seen.push(leader?.candidate));
      const running = election.run(
        (term) =>
          new Promise((resolve) => term.signal.addEventListener("abort", () => resolve(), { once: true })),
      );
      await advance(clock, 500);
      const first = election.term?.token;
      expect(first).toBeDefined();
      await forge(forged);
      await advance(clock, 3 * TTL_MS);
      expect(election.leading).toBe(true);
      expect(election.term!.token).toBeGreaterThan(first!);
      expect(election.term!.token).toBeLessThan(HUGE);
      expect(errors).toEqual([]);
      expect(seen).not.toContain("mallory");
      expect(seen.at(-1)).toBe(election.candidate);
      const closing = election.close();
      await advance(clock, 500);
      await Promise.all([closing, running]);
    },
  );

  it("that says that it is vacant is not free either", async () => {
    const { clock, backend, forge } = scene("observer");
    const candidacy = {
      election: "e",
      candidate: "c",
      value: "",
      ttlMs: TTL_MS,
      retryMs: 100,
      attemptMs: 1_000,
    };
    await forge({ ...forged, holder: null });
    const attempt = (): ReturnType<Backend["campaign"]> =>
      backend.campaign(candidacy, { wait: false, signal: never });
    expect(await attempt()).toBeNull();
    await advance(clock, TTL_MS);
    expect(await attempt()).not.toBeNull();
  });

  it("is what the codec reads from a text, too", async () => {
    const { backend, forge } = scene("observer");
    expect(encodeLease(forged)).toContain(HUGE.toString());
    await forge(forged);
    for await (const leader of backend.observe("e", { signal: never, pollMs: 1000, attemptMs: 1000 })) {
      expect(leader).toMatchObject({ candidate: UNKNOWN_HOLDER, token: 101n });
      break;
    }
  });
});
