/** Requests and answers of ZooKeeper's protocol, as in its `zookeeper.jute`. */
import type { Change, CreateMode, FailedCheck, NodeData, Stat } from "../client.js";
import { ERRNO } from "./errors.js";
import { JuteError, JuteReader, JuteWriter } from "./jute.js";

export const OP = {
  create: 1,
  delete: 2,
  exists: 3,
  getData: 4,
  setData: 5,
  getChildren: 8,
  ping: 11,
  check: 13,
  multi: 14,
  create2: 15,
  createContainer: 19,
  auth: 100,
  close: -11,
} as const;

/** Answers that belong to no request in the queue. */
export const XID = { event: -1, ping: -2, auth: -4 } as const;

const FLAGS: Record<CreateMode, number> = { persistent: 0, "ephemeral-sequential": 3, container: 4 };

/** Everybody may do everything, as Curator's and kazoo's nodes are; or only those who can show our credentials. */
export type Acl = "open" | "creator";

const ALL_PERMISSIONS = 31;
const EPHEMERAL = 1;

export interface ConnectRequest {
  readonly lastZxid: bigint;
  readonly timeoutMs: number;
  readonly sessionId: bigint;
  readonly password: Uint8Array;
}

export interface ConnectResponse {
  /** Zero or less: the session is over. */
  readonly timeoutMs: number;
  readonly sessionId: bigint;
  readonly password: Buffer;
  readonly readOnly: boolean;
}

export interface ReplyHeader {
  readonly xid: number;
  readonly zxid: bigint;
  readonly errno: number;
}

export interface WatchEvent {
  /** 1 created, 2 deleted, 3 data changed, 4 children changed; -1: about the connection itself. */
  readonly type: number;
  readonly path: string;
}

export function connectRequest({ lastZxid, timeoutMs, sessionId, password }: ConnectRequest): Buffer {
  const protocolVersion = 0;
  const readOnly = false; // a server that is cut off from its ensemble decides nothing
  return new JuteWriter()
    .int(protocolVersion)
    .long(lastZxid)
    .int(timeoutMs)
    .long(sessionId)
    .buffer(password)
    .bool(readOnly)
    .frame();
}

export function connectResponse(frame: Buffer): ConnectResponse {
  const reader = new JuteReader(frame);
  reader.int(); // protocol version
  const timeoutMs = reader.int();
  const sessionId = reader.long();
  const password = Buffer.from(reader.buffer());
  return { timeoutMs, sessionId, password, readOnly: reader.left > 0 && reader.bool() };
}

function request(xid: number, type: number): JuteWriter {
  return new JuteWriter().int(xid).int(type);
}

export const pingRequest = (): Buffer => request(XID.ping, OP.ping).frame();

export const closeRequest = (xid: number): Buffer => request(xid, OP.close).frame();

export function authRequest(scheme: string, auth: string): Buffer {
  return request(XID.auth, OP.auth).int(0).text(scheme).text(auth).frame();
}

export function createRequest(xid: number, path: string, data: string, mode: CreateMode, acl: Acl): Buffer {
  const writer = request(xid, mode === "container" ? OP.createContainer : OP.create2);
  return creation(writer, path, data, FLAGS[mode], acl).frame();
}

function creation(writer: JuteWriter, path: string, data: string, flags: number, acl: Acl): JuteWriter {
  const [scheme, id] = acl === "open" ? (["world", "anyone"] as const) : (["auth", ""] as const);
  return writer.text(path).text(data).int(1).int(ALL_PERMISSIONS).text(scheme).text(id).int(flags);
}

const ANY_VERSION = -1;

export const deleteRequest = (xid: number, path: string, version = ANY_VERSION): Buffer =>
  request(xid, OP.delete).text(path).int(version).frame();

export function readRequest(
  xid: number,
  type: typeof OP.exists | typeof OP.getData | typeof OP.getChildren,
  path: string,
  watch: boolean,
): Buffer {
  return request(xid, type).text(path).bool(watch).frame();
}

export const setDataRequest = (xid: number, path: string, data: string, version: number): Buffer =>
  request(xid, OP.setData).text(path).text(data).int(version).frame();

export function checkRequest(xid: number, paths: readonly string[]): Buffer {
  const writer = request(xid, OP.multi);
  for (const path of paths) writer.int(OP.check).bool(false).int(-1).text(path).int(ANY_VERSION);
  return writer.int(-1).bool(true).int(-1).frame();
}

const CHANGES: Record<Change["kind"], number> = {
  check: OP.check,
  remove: OP.delete,
  create: OP.create,
  write: OP.setData,
};

export function commitRequest(xid: number, changes: readonly Change[], acl: Acl): Buffer {
  const writer = request(xid, OP.multi);
  for (const change of changes) {
    writer.int(CHANGES[change.kind]).bool(false).int(-1);
    if (change.kind === "create") creation(writer, change.path, change.data, EPHEMERAL, acl);
    else if (change.kind === "write") writer.text(change.path).text(change.data).int(change.version);
    else writer.text(change.path).int(ANY_VERSION);
  }
  return writer.int(-1).bool(true).int(-1).frame();
}

export function replyHeader(reader: JuteReader): ReplyHeader {
  return { xid: reader.int(), zxid: reader.long(), errno: reader.int() };
}

export function watchEvent(reader: JuteReader): WatchEvent {
  const type = reader.int();
  reader.int(); // state of the connection, of which we know better
  return { type, path: reader.text() };
}

export function stat(reader: JuteReader): Stat {
  const czxid = reader.long();
  const mzxid = reader.long();
  reader.long(); // ctime
  reader.long(); // mtime
  const version = reader.int();
  reader.int(); // cversion
  reader.int(); // aversion
  const ephemeralOwner = reader.long();
  reader.int(); // data length
  const numChildren = reader.int();
  reader.long(); // pzxid
  return { czxid, mzxid, version, ephemeralOwner, numChildren };
}

export function created(reader: JuteReader): { path: string; stat: Stat } {
  return { path: reader.text(), stat: stat(reader) };
}

export function nodeData(reader: JuteReader): NodeData {
  return { data: reader.text(), stat: stat(reader) };
}

export function children(reader: JuteReader): string[] {
  return reader.vector(4, () => reader.text());
}

/** One result for each check, and an end. `undefined`: all of them held. */
export function checkResults(reader: JuteReader, count: number): FailedCheck | undefined {
  return multiResults(
    reader,
    Array.from({ length: count }, () => OP.check),
  );
}

/** One result for each change, and an end. */
export function commitResults(reader: JuteReader, changes: readonly Change[]): FailedCheck | undefined {
  return multiResults(
    reader,
    changes.map(({ kind }) => CHANGES[kind]),
  );
}

function multiResults(reader: JuteReader, types: readonly number[]): FailedCheck | undefined {
  let failed: FailedCheck | undefined;
  for (const [index, asked] of types.entries()) {
    const type = reader.int();
    reader.bool();
    reader.int();
    if (type === asked) {
      if (type === OP.create) reader.text();
      else if (type === OP.setData) stat(reader);
      continue;
    }
    if (type !== -1) throw new JuteError(`a result of type ${type} where one of type ${asked} was asked for`);
    const errno = reader.int();
    // Of a transaction that failed, all results are errors; the others only say that they were undone.
    if (errno !== ERRNO.ok && errno !== UNDONE) failed ??= { index, errno };
  }
  const end = { type: reader.int(), done: reader.bool() };
  if (end.type !== -1 || !end.done) throw new JuteError("the results of a transaction have no end");
  return failed;
}

/** "Runtime inconsistency": another part of the same transaction failed. */
const UNDONE = -2;
