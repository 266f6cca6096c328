/** Names are hostile until checked. Stores encode what passes here; nothing else reaches them. */
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { invalid } from "./errors.js";

const LONGEST_NAME = 200;
const LONGEST_ID = 100;
/** In the place of a name that is too long for its record's key. */
const DIGEST = /^sha256-[0-9a-f]{64}$/;
/** With its random part, whoever made it. */
const LONGEST_CANDIDATE = 200;
const LONGEST_VALUE_BYTES = 16 * 1024;
// oxlint-disable-next-line no-control-regex -- control characters are what we look for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** An election's name: 1 to 200 characters, no control characters, well-formed. */
export function checkName(name: unknown): string {
  return checkText("name", name, LONGEST_NAME);
}

/** The readable part of a candidate's id. */
export function checkId(id: unknown): string {
  return checkText("id", id, LONGEST_ID);
}

/** A candidate as others name it: its full id, or the readable part alone. */
export function checkCandidate(candidate: unknown): string {
  return checkText("candidate", candidate, LONGEST_CANDIDATE);
}

/** Whether a text that was read from a store can name a candidate. */
export function namesCandidate(candidate: unknown): candidate is string {
  return (
    typeof candidate === "string" &&
    candidate.length > 0 &&
    candidate.length <= LONGEST_CANDIDATE &&
    !CONTROL.test(candidate) &&
    wellFormed(candidate)
  );
}

/** The value a leader publishes. Any well-formed text, of a size a store can hold. */
export function checkValue(value: unknown): string {
  if (typeof value !== "string") throw invalid(`value must be a string, got ${typeof value}`);
  const bytes = Buffer.byteLength(value);
  if (bytes > LONGEST_VALUE_BYTES) {
    throw invalid(
      `value is ${bytes} bytes long; at most ${LONGEST_VALUE_BYTES} fit: publish an address, not the data`,
    );
  }
  if (!wellFormed(value))
    throw invalid("value holds half of a surrogate pair, which no store keeps; pass well-formed text");
  return value;
}

/** What a candidate is called if nobody names it. */
export function defaultId(host = hostname()): string {
  return host.length > 0 && host.length <= LONGEST_ID && !CONTROL.test(host) ? host : "candidate";
}

function checkText(what: string, text: unknown, longest: number): string {
  if (typeof text !== "string") throw invalid(`${what} must be a string, got ${typeof text}`);
  if (text.length === 0) throw invalid(`${what} must not be empty`);
  if (text.length > longest)
    throw invalid(`${what} is ${text.length} characters long; at most ${longest} are allowed`);
  if (CONTROL.test(text))
    throw invalid(`${what} ${JSON.stringify(text)} holds a control character; use printable ones`);
  if (!wellFormed(text))
    throw invalid(`${what} ${JSON.stringify(text)} holds half of a surrogate pair; use well-formed text`);
  return text;
}

function wellFormed(text: string): boolean {
  // `String.prototype.isWellFormed` is in every supported Node, but not in every TypeScript lib.
  return !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text);
}

/** Key of a record that is kept beside an election: `<kind>.<name>`; a name that leaves no room for the kind is digested. */
export function recordKey(kind: string, name: string): string {
  const key = `${kind}.${checkName(name)}`;
  if (key.length <= LONGEST_NAME) return key;
  return `${kind}.sha256-${createHash("sha256").update(name).digest("hex")}`;
}

/** The election that a record of this kind belongs to, by its key; `undefined`: it is another record, or cannot be told. */
export function recordOwner(kind: string, key: string): string | undefined {
  const name = key.startsWith(`${kind}.`) ? key.slice(kind.length + 1) : undefined;
  return name === undefined || name.length === 0 || DIGEST.test(name) ? undefined : name;
}
