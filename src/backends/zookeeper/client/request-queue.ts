/** Requests of one connection that wait for an answer. A server answers them in order, and pings in an order of their own. */
import { ERRNO, serverError, ZooKeeperError } from "./errors.js";
import { JuteError, type JuteReader } from "./jute.js";
import { XID } from "./messages.js";

type Take = (reader: JuteReader) => void;
type Fail = (error: unknown) => void;

interface PendingRequest {
  readonly xid: number;
  readonly what: string;
  readonly take: Take;
  readonly fail: Fail;
}

export class RequestQueue {
  #requests: PendingRequest[] = [];
  #pings: PendingRequest[] = [];
  #xid = 0;

  /** The number to send it with. */
  add(what: string, take: Take, fail: Fail): number {
    this.#xid = this.#xid >= 0x7fff_fff0 ? 1 : this.#xid + 1;
    this.#requests.push({ xid: this.#xid, what, take, fail });
    return this.#xid;
  }

  addPing(take: Take, fail: Fail): void {
    this.#pings.push({ xid: XID.ping, what: "ping", take, fail });
  }

  /** Passes an answer on to the request that it belongs to. Returns the error if the server refused that. */
  answered(xid: number, errno: number, reader: JuteReader, who: string): ZooKeeperError | undefined {
    const queue = xid === XID.ping ? this.#pings : this.#requests;
    const [request] = queue;
    if (request?.xid !== xid)
      throw new JuteError(`an answer to request ${xid}, where ${request?.xid ?? "none"} was due`);
    const complete = errno === ERRNO.ok || isMulti(request, reader);
    if (complete) request.take(reader); // throws if it cannot be read: then it fails with the connection
    queue.shift();
    if (complete) return undefined;
    const error = serverError(errno, request.what, who);
    request.fail(error);
    return error;
  }

  /** The connection is closed: none of them will be answered. */
  fail(error: ZooKeeperError): void {
    const failed = [...this.#requests, ...this.#pings];
    this.#requests = [];
    this.#pings = [];
    for (const request of failed) request.fail(error.errno === undefined ? error : lostWith(error));
  }
}

/** A transaction that failed carries the error of its first failing part in the header, and all results behind it. */
function isMulti(request: PendingRequest, reader: JuteReader): boolean {
  return request.what === "multi" && reader.left > 0;
}

/** Only the request that was refused is known not to have been carried out; the others are not. */
function lostWith(error: ZooKeeperError): ZooKeeperError {
  return new ZooKeeperError(error.kind, error.code, error.message, { cause: error });
}
