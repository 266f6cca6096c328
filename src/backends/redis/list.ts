/** Which elections there are: SCAN over the keys, bounded, since a database may hold millions of others. */
import type { CallOptions, Listing } from "../../seam/backend.js";
import { MOST_LISTED } from "../../kit/listing.js";
import type { Connection } from "./connection.js";
import type { KeyPattern } from "./keys.js";

/** Keys the server looks at in one step, and steps on each node. */
const STEP_KEYS = 1_000;
const MOST_STEPS = 2_000;

export async function listKeys(
  connection: Connection,
  { pattern, nameOf }: KeyPattern,
  { signal }: CallOptions,
): Promise<Listing> {
  const outer = connection.driver.keyPrefix;
  const names = new Set<string>();
  let complete = true;
  for (const ask of await connection.nodes({ what: "listing elections", signal })) {
    let cursor = "0";
    for (let step = 0; ; step++) {
      if (step >= MOST_STEPS || names.size > MOST_LISTED) return { names: [...names], complete: false };
      const answer = await ask(["SCAN", cursor, "MATCH", pattern(outer), "COUNT", String(STEP_KEYS)]);
      const [next, found]: unknown[] = Array.isArray(answer) ? answer : [];
      if (!Array.isArray(found)) {
        complete = false;
        break;
      }
      for (const key of found) {
        const name = nameOf(String(key), outer);
        if (name !== undefined) names.add(name);
      }
      cursor = String(next);
      if (cursor === "0") break;
    }
  }
  return { names: [...names], complete };
}
