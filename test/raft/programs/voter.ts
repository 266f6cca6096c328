/**
 * A voter with a real journal that is asked to vote in every term, once for a bid
 * of this life of its. Arguments: the directory, the name of this life, the last
 * term. Says `yes <term> <bid>` only where the voter would have answered. Its
 * votes are long, so that the journal is written anew on the way.
 */
import { DiskJournal } from "../../../src/backends/raft/journal.js";
import type { JournalRecord } from "../../../src/backends/raft/journal-records.js";
import { NodeJournalDisk } from "../../../src/backends/raft/node-disk.js";
import { Voter } from "../../../src/backends/raft/voter.js";

const [directory = "", life = "", last = "0"] = process.argv.slice(2);
const LEASE_MS = 1_000;
const PADDING = "x".repeat(40_000);
/** After the time in which a voter that has just started keeps quiet. */
const at = { now: 2 * LEASE_MS, wall: 0 };

const journal = new DiskJournal(new NodeJournalDisk(directory, "journal.new"));
const votes = new Map<string, JournalRecord & { kind: "vote" }>();
for (const record of await journal.load()) if (record.kind === "vote") votes.set(record.election, record);
const voter = new Voter({ records: votes.values(), floor: 0n, startedAt: 0 });
journal.compactFrom(() => voter.records().map((record) => ({ kind: "vote", ...record })));

for (let term = 1n; term <= BigInt(last); term++) {
  const bid = { id: `${life}-${term}`, candidate: life + PADDING };
  const { answer, persist } = voter.vote({ kind: "vote", election: "e", term, bid, leaseMs: LEASE_MS }, at);
  // As the node does: every answer waits for all records so far, and there is none if they are not on the disk.
  if (persist !== undefined) await journal.append({ kind: "vote", ...persist });
  if (answer.yes) process.stdout.write(`yes ${term} ${bid.id}\n`);
}
await journal.close();
