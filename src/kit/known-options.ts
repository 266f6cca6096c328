/** Options that do not exist are refused: a misspelt `ttl` would otherwise leave the default in place, in silence. */
import { invalid } from "./errors.js";
import { nearest } from "./nearest.js";

/** `known`: every option there is. `what`: whose options they are. */
export function checkOptions(what: string, options: unknown, known: Readonly<Record<string, true>>): void {
  if (typeof options !== "object" || options === null)
    throw invalid(
      `${what} takes an object with options, at least { name: "…" }; got ${options === null ? "null" : typeof options}`,
    );
  for (const [key, value] of Object.entries(options)) {
    if (Object.hasOwn(known, key) || value === undefined) continue;
    const meant = Object.hasOwn(known, `${key}Ms`) ? `${key}Ms` : nearest(key, Object.keys(known));
    const hint =
      meant === undefined ? `known are ${Object.keys(known).sort().join(", ")}` : `did you mean ${meant}?`;
    throw invalid(`${what} has no option "${key}"; ${hint}`);
  }
}

/** A listener for an event that does not exist would never be called. */
export function checkEvent(what: string, event: string, known: Readonly<Record<string, true>>): void {
  if (Object.hasOwn(known, event)) return;
  const names = Object.keys(known);
  const meant = nearest(event, names);
  const hint = meant === undefined ? `events are ${names.join(", ")}` : `did you mean "${meant}"?`;
  throw invalid(`${what} has no event "${event}"; ${hint}`);
}
