/** What a journal holds, and its bytes: frames of `magic | length | crc32c | JSON`, one for each write to the disk. */
import { crc32c } from "./crc32c.js";
import type { Bid, VoteRecord } from "./messages.js";
import type { RegisterRecord } from "./register.js";

/** The first record: which voter of which cluster this journal belongs to, and a random id of the journal itself. */
export interface BirthRecord {
  readonly kind: "birth";
  readonly cluster: string;
  readonly self: string;
  readonly id: string;
}

/** From here on the voter takes part. */
export interface StartRecord {
  readonly kind: "start";
  /** No term up to this one is voted for. */
  readonly floor: bigint;
  /** Terms begin above this one. */
  readonly seed: bigint;
  /** At a first start: the birth ids of all voters, none of which had voted. Empty after a rejoin. */
  readonly births: readonly string[];
}

export type JournalRecord =
  | BirthRecord
  | StartRecord
  | ({ readonly kind: "vote" } & VoteRecord)
  | RegisterRecord;

const MAGIC = 0x314c4a43; // "CJL1"
const HEAD = 12;
/** Longest frame that is taken for one: a rewritten journal is one frame a thousand records. */
const LONGEST_FRAME = 128 * 1024 * 1024;

export function encodeFrame(records: readonly JournalRecord[]): Uint8Array {
  const body = Buffer.from(JSON.stringify(records.map(pack)));
  const frame = Buffer.alloc(HEAD + body.length);
  frame.writeUInt32LE(MAGIC, 0);
  frame.writeUInt32LE(body.length, 4);
  frame.writeUInt32LE(crc32c(body), 8);
  body.copy(frame, HEAD);
  return frame;
}

/** What could be read, and where it ends. */
export interface Decoded {
  readonly records: readonly JournalRecord[];
  /** Bytes of whole frames from the beginning. */
  readonly goodBytes: number;
  /** There are whole frames after a broken one: this is damage, not a write that was cut short. */
  readonly damaged: boolean;
}

export function decodeJournal(bytes: Uint8Array): Decoded {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const records: JournalRecord[] = [];
  let at = 0;
  for (let frame = frameAt(buffer, at); frame !== undefined; frame = frameAt(buffer, at)) {
    records.push(...frame.records);
    at = frame.end;
  }
  return { records, goodBytes: at, damaged: hasFrameAfter(buffer, at) };
}

interface Frame {
  readonly records: readonly JournalRecord[];
  readonly end: number;
}

function frameAt(buffer: Buffer, at: number): Frame | undefined {
  if (at + HEAD > buffer.length || buffer.readUInt32LE(at) !== MAGIC) return undefined;
  const end = at + HEAD + buffer.readUInt32LE(at + 4);
  if (end > buffer.length || end - at > LONGEST_FRAME) return undefined;
  const body = buffer.subarray(at + HEAD, end);
  if (crc32c(body) !== buffer.readUInt32LE(at + 8)) return undefined;
  try {
    const packed: unknown = JSON.parse(body.toString());
    return Array.isArray(packed) ? { records: packed.map(unpack), end } : undefined;
  } catch {
    return undefined;
  }
}

function hasFrameAfter(buffer: Buffer, from: number): boolean {
  const magic = Buffer.alloc(4);
  magic.writeUInt32LE(MAGIC);
  for (let at = buffer.indexOf(magic, from + 1); at >= 0; at = buffer.indexOf(magic, at + 1))
    if (frameAt(buffer, at) !== undefined) return true;
  return false;
}

/** The last record of each election counts. */
export function lastVotes(records: readonly JournalRecord[]): readonly VoteRecord[] {
  const votes = new Map<string, VoteRecord>();
  for (const record of records) if (record.kind === "vote") votes.set(record.election, record);
  return [...votes.values()];
}

/** Fields of a record as JSON can hold them. */
type Packed = Record<string, unknown>;

function pack(record: JournalRecord): Packed {
  switch (record.kind) {
    case "birth":
      return { ...record };
    case "start":
      return { ...record, floor: `${record.floor}`, seed: `${record.seed}` };
    case "vote":
      return { ...record, term: `${record.term}` };
    case "register": {
      const { kind, key, promised, accepted, blank } = record;
      const value =
        accepted === null
          ? null
          : {
              ballot: `${accepted.ballot}`,
              version: `${accepted.version}`,
              base: accepted.base === null ? null : `${accepted.base}`,
              text: accepted.text,
            };
      return { kind, key, promised: `${promised}`, accepted: value, ...(blank === true && { blank }) };
    }
  }
}

function unpack(value: unknown): JournalRecord {
  const packed = objectOf(value);
  switch (packed["kind"]) {
    case "birth":
      return {
        kind: "birth",
        cluster: text(packed, "cluster"),
        self: text(packed, "self"),
        id: text(packed, "id"),
      };
    case "start": {
      const births = packed["births"];
      if (!Array.isArray(births)) throw new Error("births");
      return {
        kind: "start",
        floor: whole(packed, "floor"),
        seed: whole(packed, "seed"),
        births: births.map(String),
      };
    }
    case "vote":
      return {
        kind: "vote",
        election: text(packed, "election"),
        term: whole(packed, "term"),
        vote: bidOf(packed["vote"]),
        leader: bidOf(packed["leader"]),
        leaseMs: Number(packed["leaseMs"]),
      };
    case "register":
      return {
        kind: "register",
        key: text(packed, "key"),
        promised: whole(packed, "promised"),
        accepted: acceptedOf(packed["accepted"]),
        ...(packed["blank"] === true && { blank: true }),
      };
    default:
      // Written by a newer version: leaving it out could forget a vote.
      throw new Error(`unknown kind of record ${String(packed["kind"])}`);
  }
}

function bidOf(value: unknown): Bid | null {
  if (value === null) return null;
  const bid = objectOf(value);
  return { id: text(bid, "id"), candidate: text(bid, "candidate") };
}

function acceptedOf(value: unknown): RegisterRecord["accepted"] {
  if (value === null) return null;
  const accepted = objectOf(value);
  return {
    ballot: whole(accepted, "ballot"),
    version: whole(accepted, "version"),
    base: accepted["base"] === null ? null : whole(accepted, "base"),
    text: text(accepted, "text"),
  };
}

function objectOf(value: unknown): Packed {
  if (typeof value !== "object" || value === null) throw new Error("not an object");
  return value as Packed;
}

function text(packed: Packed, field: string): string {
  const value = packed[field];
  if (typeof value !== "string") throw new Error(field);
  return value;
}

function whole(packed: Packed, field: string): bigint {
  return BigInt(text(packed, field));
}
