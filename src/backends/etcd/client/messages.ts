/**
 * The messages of etcd's v3 API that this library uses, by their public field
 * numbers. Requests are encoded whole; of answers, only what is used is read.
 */
import type {
  Comparison,
  KeyValue,
  LeaseGrant,
  LeaseLife,
  Operation,
  RangeAnswer,
  RangeRequest,
  Transaction,
  TransactionAnswer,
  WatchEvent,
  WatchRequest,
} from "../client.js";
import { Fields, Writer } from "./protobuf.js";

export const methods = {
  range: "/etcdserverpb.KV/Range",
  put: "/etcdserverpb.KV/Put",
  deleteRange: "/etcdserverpb.KV/DeleteRange",
  txn: "/etcdserverpb.KV/Txn",
  leaseGrant: "/etcdserverpb.Lease/LeaseGrant",
  leaseRevoke: "/etcdserverpb.Lease/LeaseRevoke",
  leaseKeepAlive: "/etcdserverpb.Lease/LeaseKeepAlive",
  leaseTimeToLive: "/etcdserverpb.Lease/LeaseTimeToLive",
  watch: "/etcdserverpb.Watch/Watch",
  authenticate: "/etcdserverpb.Auth/Authenticate",
  status: "/etcdserverpb.Maintenance/Status",
} as const;

const SORT_BY_CREATE = 2;
const sortOrder = { "oldest-first": 1, "newest-first": 2 } as const;
const comparisonTarget = {
  create: { target: 1, field: 5 },
  mod: { target: 2, field: 6 },
  lease: { target: 4, field: 8 },
};

function writeRange(writer: Writer, request: RangeRequest): void {
  writer
    .text(1, request.key)
    .text(2, request.rangeEnd)
    .int(3, request.limit)
    .int(5, request.sort && sortOrder[request.sort])
    .int(6, request.sort && SORT_BY_CREATE)
    .bool(8, request.keysOnly)
    .int(13, request.maxCreateRevision);
}

function writePut(writer: Writer, key: string, value: string, lease: bigint | undefined): void {
  writer.text(1, key).text(2, value).int(3, lease);
}

function writeOperation(writer: Writer, operation: Operation): void {
  switch (operation.kind) {
    case "range":
      writer.message(1, () => writeRange(writer, operation));
      break;
    case "put":
      writer.message(2, () => writePut(writer, operation.key, operation.value, operation.lease));
      break;
    case "touch":
      writer.message(2, () => writer.text(1, operation.key).bool(5, true).bool(6, true)); // ignore_value, ignore_lease
      break;
    case "delete":
      writer.message(3, () => writer.text(1, operation.key));
  }
}

function writeComparison(writer: Writer, { target, key, value, rangeEnd }: Comparison): void {
  const number = comparisonTarget[target];
  writer.int(2, number.target).text(3, key).int(number.field, value).text(64, rangeEnd);
}

export function encodeRange(request: RangeRequest): Uint8Array {
  const writer = new Writer();
  writeRange(writer, request);
  return writer.finish();
}

export function encodePut(key: string, value: string, lease: bigint | undefined): Uint8Array {
  const writer = new Writer();
  writePut(writer, key, value, lease);
  return writer.finish();
}

export function encodeDelete(key: string, rangeEnd?: string): Uint8Array {
  return new Writer().text(1, key).text(2, rangeEnd).finish();
}

export function encodeTransaction({ when, then, otherwise }: Transaction): Uint8Array {
  const writer = new Writer();
  for (const comparison of when) writer.message(1, () => writeComparison(writer, comparison));
  for (const operation of then) writer.message(2, () => writeOperation(writer, operation));
  for (const operation of otherwise) writer.message(3, () => writeOperation(writer, operation));
  return writer.finish();
}

interface MutableHeader {
  revision: bigint;
  raftTerm: bigint;
}

function readHeader(message: Uint8Array, into: MutableHeader): void {
  for (const field = new Fields(message); field.next();) {
    if (field.number === 3) into.revision = field.int;
    else if (field.number === 4) into.raftTerm = field.uint;
  }
}

function decodeKeyValue(message: Uint8Array): KeyValue {
  const kv = { key: "", value: "", createRevision: 0n, modRevision: 0n, lease: 0n };
  for (const field = new Fields(message); field.next();) {
    if (field.number === 1) kv.key = field.text;
    else if (field.number === 2) kv.createRevision = field.int;
    else if (field.number === 3) kv.modRevision = field.int;
    else if (field.number === 5) kv.value = field.text;
    else if (field.number === 6) kv.lease = field.int;
  }
  return kv;
}

export function decodeRange(message: Uint8Array): RangeAnswer {
  const kvs: KeyValue[] = [];
  for (const field = new Fields(message); field.next();)
    if (field.number === 2) kvs.push(decodeKeyValue(field.bytes));
  return { kvs };
}

const NO_KEYS: RangeAnswer = { kvs: [] };

/** Of what an operation answered, only a range's answer is of use. */
function decodeResult(message: Uint8Array): RangeAnswer {
  let result = NO_KEYS;
  for (const field = new Fields(message); field.next();)
    if (field.number === 1) result = decodeRange(field.bytes);
  return result;
}

export function decodeTransaction(message: Uint8Array): TransactionAnswer {
  const answer = { revision: 0n, raftTerm: 0n, succeeded: false, results: [] as RangeAnswer[] };
  for (const field = new Fields(message); field.next();) {
    if (field.number === 1) readHeader(field.bytes, answer);
    else if (field.number === 2) answer.succeeded = field.bool;
    else if (field.number === 3) answer.results.push(decodeResult(field.bytes));
  }
  return answer;
}

export const encodeLeaseGrant = (ttlSeconds: bigint): Uint8Array => new Writer().int(1, ttlSeconds).finish();

export const encodeLeaseId = (id: bigint): Uint8Array => new Writer().int(1, id).finish();

export function decodeLeaseGrant(message: Uint8Array): LeaseGrant {
  const answer = { id: 0n, ttl: 0n };
  for (const field = new Fields(message); field.next();) {
    if (field.number === 2) answer.id = field.int;
    else if (field.number === 3) answer.ttl = field.int;
  }
  return answer;
}

export function decodeLeaseLife(message: Uint8Array): LeaseLife {
  const answer = { revision: 0n, raftTerm: 0n, ttl: 0n };
  for (const field = new Fields(message); field.next();) {
    if (field.number === 1) readHeader(field.bytes, answer);
    else if (field.number === 3) answer.ttl = field.int;
  }
  return answer;
}

const skipFilter = { puts: 0, deletes: 1 } as const;

/** `from`: first revision to be told of; without it, the next. */
export function encodeWatchCreate(id: bigint, request: WatchRequest, from: bigint | undefined): Uint8Array {
  const { key, rangeEnd, skip } = request;
  return new Writer()
    .message(1, (create) => {
      create.text(1, key).text(2, rangeEnd).int(3, from).bool(4, true);
      if (skip !== undefined) create.bytes(5, Uint8Array.of(skipFilter[skip]));
      create.int(7, id);
    })
    .finish();
}

export const encodeWatchCancel = (id: bigint): Uint8Array =>
  new Writer().message(2, (cancel) => cancel.int(1, id)).finish();

export const encodeWatchProgress = (): Uint8Array => new Writer().message(3, () => {}).finish();

export interface WatchAnswer {
  readonly id: bigint;
  readonly revision: bigint;
  readonly created: boolean;
  readonly canceled: boolean;
  readonly compactRevision: bigint;
  readonly cancelReason: string;
  readonly events: readonly WatchEvent[];
}

export function decodeWatchAnswer(message: Uint8Array): WatchAnswer {
  const answer = {
    id: 0n,
    revision: 0n,
    raftTerm: 0n,
    created: false,
    canceled: false,
    compactRevision: 0n,
    cancelReason: "",
    events: [] as WatchEvent[],
  };
  for (const field = new Fields(message); field.next();) {
    if (field.number === 1) readHeader(field.bytes, answer);
    else if (field.number === 2) answer.id = field.int;
    else if (field.number === 3) answer.created = field.bool;
    else if (field.number === 4) answer.canceled = field.bool;
    else if (field.number === 5) answer.compactRevision = field.int;
    else if (field.number === 6) answer.cancelReason = field.text;
    else if (field.number === 11) answer.events.push(decodeEvent(field.bytes));
  }
  return answer;
}

const NO_KEY = decodeKeyValue(new Uint8Array());

function decodeEvent(message: Uint8Array): WatchEvent {
  let type: WatchEvent["type"] = "put";
  let kv = NO_KEY;
  for (const field = new Fields(message); field.next();) {
    if (field.number === 1) type = field.uint === 1n ? "delete" : "put";
    else if (field.number === 2) kv = decodeKeyValue(field.bytes);
  }
  return { type, kv };
}

export const encodeAuthenticate = (user: string, password: string): Uint8Array =>
  new Writer().text(1, user).text(2, password).finish();

export function decodeToken(message: Uint8Array): string {
  let token = "";
  for (const field = new Fields(message); field.next();) if (field.number === 2) token = field.text;
  return token;
}

export interface MemberStatus {
  readonly version: string;
  /** Member id of the cluster's leader as this member knows it; zero: it knows none. */
  readonly leader: bigint;
  readonly memberId: bigint;
  readonly raftTerm: bigint;
}

export function decodeStatus(message: Uint8Array): MemberStatus {
  const status = { version: "", leader: 0n, memberId: 0n, raftTerm: 0n };
  for (const field = new Fields(message); field.next();) {
    if (field.number === 1) {
      for (const inner = new Fields(field.bytes); inner.next();)
        if (inner.number === 2) status.memberId = inner.uint;
    } else if (field.number === 2) status.version = field.text;
    else if (field.number === 4) status.leader = field.uint;
    else if (field.number === 6) status.raftTerm = field.uint;
  }
  return status;
}
