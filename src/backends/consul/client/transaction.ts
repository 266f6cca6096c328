/** Transactions on the wire. Written by hand: flags and indexes do not survive as JavaScript numbers. */
import type { HeldLock, Operation, Refusal, TransactionAnswer } from "../client.js";
import { failure, isForbidden, nonsense } from "./errors.js";
import { property, unsigned } from "./json.js";

export function transactionBody(operations: readonly Operation[]): string {
  return `[${operations.map((operation) => `{"KV":{${fields(operation).join(",")}}}`).join(",")}]`;
}

/** Asks without writing: Consul carries it out as a read. */
export function checkBody(locks: readonly HeldLock[]): string {
  const checks = locks.map(({ key, session }) => ({
    KV: { Verb: "check-session", Key: key, Session: session },
  }));
  return JSON.stringify(checks);
}

export function checkAnswer(what: string, status: number, body: unknown, count: number): boolean {
  if (status === 200) {
    const results = property(body, "Results");
    if (Array.isArray(results) && results.length === count) return true;
    throw nonsense(what, "it does not speak of every key");
  }
  const reasons = reasonsOf(what, body);
  if (reasons.every((reason) => /session check|doesn't exist/.test(reason))) return false;
  throw failure(what, status, reasons.join("; "));
}

function fields(operation: Operation): string[] {
  const { verb, key } = operation;
  const common = [`"Verb":${JSON.stringify(verb)}`, `"Key":${JSON.stringify(key)}`];
  switch (verb) {
    case "check-not-exists":
      return common;
    case "check-index":
    case "delete-cas":
      return [...common, `"Index":${operation.index}`];
    case "cas":
      return [...common, `"Index":${operation.index}`, ...content(operation)];
    case "lock":
    case "unlock":
      return [...common, `"Session":${JSON.stringify(operation.session)}`, ...content(operation)];
  }
}

function content({ value, flags }: { readonly value: string; readonly flags: bigint }): string[] {
  return [`"Value":"${Buffer.from(value).toString("base64")}"`, `"Flags":${flags}`];
}

/** What Consul says of each refusal, after names of keys and sessions were taken out. */
const REFUSALS: readonly (readonly [RegExp, Refusal])[] = [
  [/due to lock delay/, "lock-delay"],
  [/lock is already held|lock isn't held/, "held"],
  [/invalid session/, "no-session"],
  [/index check|check index|doesn't exist|exists|index is stale/, "changed"],
];

export function transactionAnswer(
  what: string,
  status: number,
  body: unknown,
  operations: readonly Operation[],
): TransactionAnswer {
  if (status === 200) return { committed: true, modifyIndex: modifyIndexOf(what, body, operations) };
  const reasons = reasonsOf(what, body);
  for (const [pattern, refusal] of REFUSALS)
    if (reasons.some((reason) => pattern.test(reason))) return { committed: false, refusal };
  throw failure(what, status, reasons.join("; "));
}

/** Without the names of keys and sessions: a key may be called anything. */
function reasonsOf(what: string, body: unknown): string[] {
  const errors = property(body, "Errors");
  if (!Array.isArray(errors) || errors.length === 0) throw nonsense(what, "a refusal without its reason");
  const said = errors.map((error: unknown) => String(property(error, "What")));
  const reasons = said.map((text) => text.replace(/"(?:[^"\\]|\\.)*"/g, '""'));
  if (reasons.some(isForbidden)) throw failure(what, 403, said.join("; "));
  return reasons;
}

/** Of the last operation, which is the one that writes; it must be about the key that was written. */
function modifyIndexOf(what: string, body: unknown, operations: readonly Operation[]): bigint {
  if (operations.at(-1)?.verb === "delete-cas") return 0n; // nothing is told of what is gone
  const results = property(body, "Results");
  const last: unknown = Array.isArray(results) ? results.at(-1) : undefined;
  const kv = property(last, "KV");
  const index = unsigned(property(kv, "ModifyIndex"));
  const asked = operations.at(-1);
  if (index === undefined || asked === undefined || property(kv, "Key") !== asked.key)
    throw nonsense(what, "it does not say what was written");
  if (asked.verb === "lock" && property(kv, "Session") !== asked.session)
    throw nonsense(what, "the lock is said to be another session's");
  return index;
}
