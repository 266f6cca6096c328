/** Options that do not exist are refused: a misspelt `ttl` would otherwise leave the default in place, in silence. */
import { invalid } from "./errors.js";
import { nearest } from "./nearest.js";

/** What other libraries call it. Suggested where the option exists. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  ...{ store: "backend", retries: "retry", handler: "job", fn: "job", task: "job" },
  ...{ timezone: "timeZone", tz: "timeZone", schedule: "cron", pattern: "cron" },
};

/** `known`: every option there is. `what`: whose options they are. */
export function checkOptions(what: string, options: unknown, known: Readonly<Record<string, true>>): void {
  if (typeof options !== "object" || options === null)
    throw invalid(
      `${what} takes an object with options, at least { name: "…" }; got ${options === null ? "null" : typeof options}`,
    );
  refuseUnknown(what, options, known);
}

function refuseUnknown(what: string, options: object, known: Readonly<Record<string, true>>): void {
  for (const [key, value] of Object.entries(options)) {
    if (Object.hasOwn(known, key) || value === undefined) continue;
    const meant = meantBy(key, known);
    const hint =
      meant === undefined ? `known are ${Object.keys(known).sort().join(", ")}` : `did you mean ${meant}?`;
    throw invalid(`${what} has no option "${key}"; ${hint}`);
  }
}

function meantBy(key: string, known: Readonly<Record<string, true>>): string | undefined {
  const other = Object.hasOwn(OTHER_WORDS, key) ? OTHER_WORDS[key]! : key;
  const exact = [other, `${key}Ms`].find((name) => Object.hasOwn(known, name));
  // A far-fetched suggestion is worse than the list.
  return exact ?? nearest(key, Object.keys(known), Math.min(2, Math.max(1, Math.floor(key.length / 3))));
}

const SIGNAL = { signal: true } as const;

/** Options of a call, which may all be left out. A signal in their place would never be listened to. */
export function checkCall(
  what: string,
  options: unknown,
  known: Readonly<Record<string, true>> = SIGNAL,
): void {
  if (typeof options !== "object" || options === null)
    throw invalid(`${what} takes an object with options such as { signal }; got ${shown(options)}`);
  if (isSignal(options))
    throw invalid(`${what} was given a signal in the place of its options: pass { signal }`);
  refuseUnknown(what, options, known);
  const signal: unknown = Reflect.get(options, "signal");
  if (signal !== undefined && !isSignal(signal))
    throw invalid(`signal must be an AbortSignal; got ${shown(signal)}`);
}

/** By its looks: one of another realm, or a polyfill, is as good. */
function isSignal(value: unknown): boolean {
  return typeof value === "object" && value !== null && typeof Reflect.get(value, "aborted") === "boolean";
}

/** `true` and `false` only: the text "false", say from the environment, would be taken for true. */
export function checkFlag(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== "boolean")
    throw invalid(`${name} is ${shown(value)}; it must be true or false`);
}

export function checkLogger(logger: unknown): void {
  if (logger === undefined) return;
  const methods = ["debug", "info", "warn", "error"];
  const able = (typeof logger === "object" && logger !== null) || typeof logger === "function";
  if (!able || !methods.some((name) => typeof Reflect.get(logger, name) === "function"))
    throw invalid(`logger is ${shown(logger)}; it must be an object with the methods ${methods.join(", ")}`);
}

function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return value === null || ["boolean", "number"].includes(typeof value) ? String(value) : typeof value;
}

/** A listener for an event that does not exist would never be called. */
export function checkEvent(what: string, event: string, known: Readonly<Record<string, true>>): void {
  if (Object.hasOwn(known, event)) return;
  const names = Object.keys(known);
  const meant = nearest(event, names);
  const hint = meant === undefined ? `events are ${names.join(", ")}` : `did you mean "${meant}"?`;
  throw invalid(`${what} has no event "${event}"; ${hint}`);
}
