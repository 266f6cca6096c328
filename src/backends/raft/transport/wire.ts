/** Requests and answers as JSON. Whole numbers beyond 2^53 are `{"n":"123"}`. What does not fit is `undefined`, not an error. */
import type { ElectionAnswer, ElectionRequest } from "../messages.js";
import type { NodeAnswer, NodeRequest } from "../node-messages.js";
import type { RegisterAnswer, RegisterRequest } from "../register.js";

export type Request = ElectionRequest | RegisterRequest | NodeRequest;
export type Answer = ElectionAnswer | RegisterAnswer | NodeAnswer;

const DIGITS = /^[0-9]{1,24}$/;
const LONGEST_NAME = 1_000;

export function encode(message: Request | Answer): Buffer {
  const plain = (_key: string, value: unknown): unknown =>
    typeof value === "bigint" ? { n: value.toString() } : value;
  return Buffer.from(JSON.stringify(message, plain));
}

export function decodeRequest(body: Buffer): Request | undefined {
  return checked(body, REQUESTS) as Request | undefined;
}

export function decodeAnswer(body: Buffer): Answer | undefined {
  return checked(body, ANSWERS) as Answer | undefined;
}

type Check = (value: unknown) => boolean;
type Shape = Readonly<Record<string, Check>>;

const text: Check = (value) => typeof value === "string";
const name: Check = (value) => typeof value === "string" && value.length <= LONGEST_NAME;
const big: Check = (value) => typeof value === "bigint";
const whole: Check = (value) => Number.isSafeInteger(value);
const ms: Check = (value) => typeof value === "number" && value >= 0 && value <= 2 ** 50;
const flag: Check = (value) => typeof value === "boolean";
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const nullable =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const shaped =
  (shape: Shape): Check =>
  (value) =>
    fits(value, shape);
const list =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);

const bid = shaped({ id: name, candidate: name });
const versioned = { version: big, base: nullable(big), text };
const accepted = nullable(shaped({ ballot: big, ...versioned }));

const REQUESTS: Readonly<Record<string, Shape>> = {
  prevote: { election: name, candidate: name },
  vote: { election: name, term: big, bid, leaseMs: ms },
  beat: {
    election: name,
    term: big,
    bid,
    leaseMs: ms,
    opened: flag,
    version: whole,
    value: optional(text),
    since: (value) => typeof value === "number",
  },
  release: {
    election: name,
    term: big,
    candidate: name,
    id: optional(name),
    heir: optional(shaped({ candidate: name, forMs: ms })),
  },
  who: { election: name, change: whole, waitMs: ms },
  prepare: { key: name, ballot: big },
  accept: { key: name, ballot: big, value: shaped(versioned) },
  query: { key: name },
  state: { after: optional(name), part: (value) => value === "votes" || value === "registers" },
  read: { key: name },
  write: { key: name, expected: nullable(big), text },
};

const refusal = { why: optional(name), detail: optional(text) };
const promised = { term: big, bid, leftMs: ms };

const ANSWERS: Readonly<Record<string, Shape>> = {
  vote: {
    yes: flag,
    term: big,
    ...refusal,
    heir: optional(flag),
    promised: optional(shaped(promised)),
    leftMs: optional(ms),
  },
  beat: { yes: flag, term: big, ...refusal, version: whole },
  release: { held: flag, unfit: optional(text) },
  who: {
    term: big,
    change: whole,
    promised: nullable(
      shaped({ ...promised, version: whole, value: text, since: (v) => typeof v === "number" }),
    ),
    quietMs: ms,
    unfit: optional(text),
  },
  register: { yes: flag, promised: big, accepted, blank: optional(flag), unfit: optional(text) },
  state: {
    birth: name,
    started: flag,
    births: list(name),
    wall: ms,
    seed: big,
    votes: list(shaped({ name, term: big, leaseMs: ms })),
    ballots: list(shaped({ name, ballot: big })),
    next: optional(name),
    unfit: optional(text),
  },
  entry: { entry: nullable(shaped(versioned)), unfit: optional(text), unknown: optional(text) },
};

function checked(body: Buffer, shapes: Readonly<Record<string, Shape>>): unknown {
  let value: unknown;
  try {
    value = JSON.parse(body.toString(), revive);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || !("kind" in value)) return undefined;
  const { kind } = value;
  if (typeof kind !== "string" || !Object.hasOwn(shapes, kind)) return undefined;
  return fits(value, shapes[kind]!) ? value : undefined;
}

function fits(value: unknown, shape: Shape): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(shape).every(([field, check]) =>
    check(Object.hasOwn(value, field) ? Reflect.get(value, field) : undefined),
  );
}

function revive(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("n" in value)) return value;
  const { n } = value;
  return typeof n === "string" && DIGITS.test(n) && Object.keys(value).length === 1 ? BigInt(n) : value;
}
