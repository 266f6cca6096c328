/** The journal, cut off at every byte, damaged, and on a disk that fails. */
import { describe, expect, it } from "vitest";
import { DiskJournal } from "../../src/backends/raft/journal.js";
import type { JournalDisk } from "../../src/backends/raft/journal.js";
import { decodeJournal, encodeFrame } from "../../src/backends/raft/journal-records.js";
import type { JournalRecord } from "../../src/backends/raft/journal-records.js";
import { crc32c } from "../../src/backends/raft/crc32c.js";

class MemoryDisk implements JournalDisk {
  bytes: Uint8Array | null = null;
  writes = 0;
  failAt = Number.POSITIVE_INFINITY;
  /** Bytes of the failing write that reach the disk all the same. */
  torn = 0;

  async load(): Promise<Uint8Array | null> {
    return this.bytes;
  }

  async append(bytes: Uint8Array): Promise<void> {
    const fails = ++this.writes >= this.failAt;
    this.bytes = Buffer.concat([this.bytes ?? Buffer.alloc(0), fails ? bytes.subarray(0, this.torn) : bytes]);
    if (fails) throw Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" });
  }

  async replace(bytes: Uint8Array): Promise<void> {
    if (++this.writes >= this.failAt) throw new Error("EIO: i/o error, rename");
    this.bytes = Buffer.from(bytes);
  }

  taken = false;

  async check(): Promise<void> {
    if (this.taken) throw new Error("another process has it");
  }

  async close(): Promise<void> {}
}

function vote(term: bigint, election = "e"): JournalRecord {
  return { kind: "vote", election, term, vote: { id: `b${term}`, candidate: "c" }, leader: null, leaseMs: 5 };
}

const RECORDS: JournalRecord[] = [
  { kind: "birth", cluster: "x", self: "n1", id: "id" },
  { kind: "start", floor: 0n, seed: 2n ** 60n, births: ["id", "id2"] },
  vote(1n),
  {
    kind: "register",
    key: "k",
    promised: 9n,
    accepted: { ballot: 8n, version: 7n, base: null, text: "ü\n🚀" },
  },
  { kind: "register", key: "l", promised: 9n, accepted: null },
  vote(2n),
];

describe("journal", () => {
  it("a disk that is full when a voter starts: it does not start, and says why", async () => {
    const disk = new MemoryDisk();
    await disk.append(encodeFrame(RECORDS));
    disk.failAt = disk.writes + 1;
    await expect(new DiskJournal(disk).load()).rejects.toThrow(/this voter does not start: EIO/);
  });

  it("a journal that another process has taken over is not relied on any more, though nothing is written", async () => {
    const disk = new MemoryDisk();
    const failures: string[] = [];
    const journal = new DiskJournal(disk, (error) => failures.push(error.message));
    await Promise.all([journal.stillOwn(), journal.stillOwn()]);
    disk.taken = true;
    const looks = await Promise.allSettled([journal.stillOwn(), journal.stillOwn()]);
    expect(looks.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(failures).toEqual([expect.stringMatching(/takes no part .*: another process has it/)]);
    await expect(journal.append(vote(3n))).rejects.toThrow(/another process has it/);
  });

  it("a look that is under way is not taken for one that begins after the question", async () => {
    const disk = new MemoryDisk();
    const journal = new DiskJournal(disk);
    let looks = 0;
    let goOn = (): void => {};
    const going = new Promise<void>((resolve) => (goOn = resolve));
    disk.check = () => (++looks === 1 ? going : Promise.reject(new Error("another process has it")));
    const first = journal.stillOwn();
    await Promise.resolve();
    expect(looks).toBe(1);
    const later = journal.stillOwn();
    goOn();
    await first;
    await expect(later).rejects.toThrow("another process has it");
  });

  it("the checksum is CRC-32C", () => {
    expect(crc32c(Buffer.from("123456789"))).toBe(0xe3069283);
  });

  it("gives back what was written", async () => {
    const disk = new MemoryDisk();
    const journal = new DiskJournal(disk);
    expect(await journal.load()).toEqual([]);
    for (const record of RECORDS) await journal.append(record);
    expect(await new DiskJournal(disk).load()).toEqual(RECORDS);
  });

  it("writes what comes together at once", async () => {
    const disk = new MemoryDisk();
    const journal = new DiskJournal(disk);
    await Promise.all(Array.from({ length: 500 }, (_, i) => journal.append(vote(BigInt(i)))));
    expect(disk.writes).toBeLessThanOrEqual(3);
    expect(await new DiskJournal(disk).load()).toHaveLength(500);
  });

  it("cut off at any byte of the last write, everything before it is there and writing goes on", async () => {
    const whole = encodeFrame(RECORDS.slice(0, 3));
    const last = encodeFrame(RECORDS.slice(3));
    for (let cut = 0; cut < last.length; cut++) {
      const disk = new MemoryDisk();
      disk.bytes = Buffer.concat([whole, last.subarray(0, cut), Buffer.alloc(cut % 7)]);
      const journal = new DiskJournal(disk);
      expect(await journal.load()).toEqual(RECORDS.slice(0, 3));
      await journal.append(vote(3n));
      expect(await new DiskJournal(disk).load()).toEqual([...RECORDS.slice(0, 3), vote(3n)]);
    }
  });

  it("damaged anywhere before the last write, it is refused for good", async () => {
    const frames = RECORDS.map((record) => encodeFrame([record]));
    const end = frames.slice(0, -1).reduce((sum, { length }) => sum + length, 0);
    for (let at = 0; at < end; at++) {
      const bytes = Buffer.concat(frames);
      bytes[at]! ^= 0x40;
      expect(decodeJournal(bytes).damaged, `byte ${at}`).toBe(true);
      const disk = new MemoryDisk();
      disk.bytes = bytes;
      await expect(new DiskJournal(disk).load()).rejects.toThrow(/damaged in the middle/);
    }
  });

  it.each([0, 5, 10_000])(
    "a write that fails after %i bytes ends it: nothing is confirmed again",
    async (torn) => {
      const disk = new MemoryDisk();
      const told: Error[] = [];
      const journal = new DiskJournal(disk, (error) => told.push(error));
      await journal.append(vote(1n));
      disk.failAt = disk.writes + 1;
      disk.torn = torn;
      const both = await Promise.allSettled([journal.append(vote(2n)), journal.append(vote(3n))]);
      expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
      disk.failAt = Number.POSITIVE_INFINITY;
      await expect(journal.append(vote(4n))).rejects.toThrow(/takes no part until it is started again.*EIO/);
      await expect(journal.settled()).rejects.toThrow(/EIO/);
      expect(told).toHaveLength(1);
      // After a start it reads what is there, and has it on the disk before anything is built on it.
      const before = disk.writes;
      expect((await new DiskJournal(disk).load())[0]).toEqual(vote(1n));
      expect(disk.writes).toBe(before + 1);
    },
  );

  it("is written anew when it is long, and forgets nothing", async () => {
    const disk = new MemoryDisk();
    const journal = new DiskJournal(disk);
    const now = new Map<string, JournalRecord>();
    journal.compactFrom(() => [...now.values()]);
    for (let i = 0; i < 300; i++) {
      const key = `k${i % 7}`;
      const accepted = { ballot: BigInt(i), version: BigInt(i), base: null, text: "x".repeat(16_000) };
      const record: JournalRecord = { kind: "register", key, promised: BigInt(i), accepted };
      now.set(key, record);
      await journal.append(record);
    }
    expect(disk.bytes!.length).toBeLessThan(2_300_000);
    const last = new Map(
      (await new DiskJournal(disk).load()).map((r) => [r.kind === "register" ? r.key : "", r]),
    );
    expect(last.size).toBe(7);
    for (const [key, record] of now) expect(last.get(key)).toEqual(record);
  });
});
