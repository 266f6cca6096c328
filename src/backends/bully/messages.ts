/** What peers say to each other. JSON; what does not fit is `undefined`, not an error. */

/** Who leads, as one peer knows it. */
export interface LeaderNote {
  readonly peer: string;
  readonly token: bigint;
  readonly candidate: string;
  readonly value: string;
  readonly since: number;
  /** How long that holds without a sign of life. */
  readonly leftMs: number;
}

interface Sender {
  /** Name of the peer, or of a process that only observes. */
  readonly from: string;
  /** Random, new with every start: tells two processes under one name apart. */
  readonly life: string;
  readonly election: string;
}

/** To higher peers: I want to lead; is one of you there? */
export interface ElectionMessage extends Sender {
  readonly kind: "election";
}

/** To all: I lead. Until `opened` only an announcement; then also the sign of life. */
export interface CoordinatorMessage extends Sender {
  readonly kind: "coordinator";
  readonly token: bigint;
  readonly candidate: string;
  readonly value: string;
  readonly since: number;
  readonly leaseMs: number;
  readonly opened: boolean;
}

/** To all: I do not lead any more. */
export interface ReleaseMessage extends Sender {
  readonly kind: "release";
  readonly token: bigint;
}

/** Who leads? Changes nothing. */
export interface WhoMessage extends Sender {
  readonly kind: "who";
}

export type Message = ElectionMessage | CoordinatorMessage | ReleaseMessage | WhoMessage;

/** Every message gets one. Of an ELECTION it is the ANSWER, if `up`. */
export interface Reply {
  /** It stands or leads in this election. */
  readonly up: boolean;
  /** A COORDINATOR is acknowledged. */
  readonly yes: boolean;
  readonly leader: LeaderNote | null;
  /** The highest number it has met. */
  readonly highest: bigint;
  /** It leads, is lower, and has told its work to stop; its lease ends after so long at the latest. */
  readonly yieldsInMs?: number | undefined;
  /** A higher peer that stands or leads. */
  readonly higher?: string | undefined;
  /** Another process uses the sender's name. */
  readonly twin?: boolean | undefined;
}

const LONGEST_NAME = 1_000;
const DIGITS = /^[0-9]{1,24}$/;

export function encode(message: Message | Reply): Buffer {
  return Buffer.from(
    JSON.stringify(message, (_key, value: unknown) => (typeof value === "bigint" ? value.toString() : value)),
  );
}

export function decodeMessage(body: Buffer): Message | undefined {
  const fields = parse(body);
  if (fields === undefined) return undefined;
  const { kind, from, life, election } = fields;
  if (!isName(from) || !isName(life) || !isName(election)) return undefined;
  const sender = { from, life, election };
  if (kind === "election" || kind === "who") return { kind, ...sender };
  const token = big(fields["token"]);
  if (token === undefined) return undefined;
  if (kind === "release") return { kind, ...sender, token };
  const { candidate, value, since, leaseMs, opened } = fields;
  if (kind !== "coordinator" || !isName(candidate) || typeof value !== "string") return undefined;
  if (!isNumber(since) || !isMs(leaseMs) || typeof opened !== "boolean") return undefined;
  return { kind, ...sender, token, candidate, value, since, leaseMs, opened };
}

export function decodeReply(body: Buffer): Reply | undefined {
  const fields = parse(body);
  const highest = big(fields?.["highest"]);
  if (fields === undefined || highest === undefined) return undefined;
  const { up, yes, yieldsInMs, higher, twin } = fields;
  const leader = fields["leader"] === null ? null : noteOf(fields["leader"]);
  if (typeof up !== "boolean" || typeof yes !== "boolean" || leader === undefined) return undefined;
  if (yieldsInMs !== undefined && !isMs(yieldsInMs)) return undefined;
  if (higher !== undefined && !isName(higher)) return undefined;
  return { up, yes, leader, highest, yieldsInMs, higher, twin: twin === true };
}

function noteOf(fields: unknown): LeaderNote | undefined {
  if (typeof fields !== "object" || fields === null) return undefined;
  const { peer, candidate, value, since, leftMs, token: text } = fields as Record<string, unknown>;
  const token = big(text);
  if (!isName(peer) || !isName(candidate) || typeof value !== "string" || token === undefined)
    return undefined;
  return isNumber(since) && isMs(leftMs) ? { peer, token, candidate, value, since, leftMs } : undefined;
}

function parse(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function big(value: unknown): bigint | undefined {
  return typeof value === "string" && DIGITS.test(value) ? BigInt(value) : undefined;
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length <= LONGEST_NAME;
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}

function isMs(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 2 ** 50;
}
