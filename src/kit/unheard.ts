/**
 * Errors that nobody listens to. A wrong address would look like waiting one's
 * turn, and a job that throws like one that works; so the first of them is said
 * on stderr, by Node's own way for warnings, and how to see the rest.
 */

/** Names are unbounded; after this many it has been said often enough. */
const MOST_NAMES = 100;
const told = new Set<string>();

/** Once for each name. `what`: as in `election "x"`. */
export function sayUnheard(what: string, message: string, howToListen: string): void {
  if (told.has(what) || told.size >= MOST_NAMES) return;
  told.add(what);
  process.emitWarning(
    `${what}: ${message}. Nobody listens to its errors: ${howToListen} to see all of them`,
    {
      type: "ConclaveWarning",
      code: "CONCLAVE_UNHEARD",
    },
  );
}
