/** Giving a leadership back in the name of another process: only if the key still names it, with this very token. */
import type { Claim } from "../../seam/backend.js";
import type { CallLimits, ConsulClient } from "./client.js";
import { leaderFromKey } from "./envelope.js";
import { assertLock, LOCK_FLAG } from "./keys.js";

const MOST_TRIES = 3;

export async function releaseClaim(
  client: ConsulClient,
  key: string,
  { candidate, token }: Claim,
  limits: CallLimits,
): Promise<"released" | "not-held"> {
  for (let attempt = 1; ; attempt++) {
    const kv = (await client.read({ range: { key } }, limits)).kvs[0];
    if (kv?.session === undefined) return "not-held";
    assertLock(kv);
    const leader = leaderFromKey(kv);
    if (leader?.candidate !== candidate || leader.token !== token) return "not-held";
    // Whoever knows the session may unlock: no delay follows, as it would if the session ended.
    const answer = await client.transaction(
      [
        { verb: "check-index", key, index: kv.modifyIndex },
        { verb: "unlock", key, session: kv.session, value: "", flags: LOCK_FLAG },
      ],
      limits,
    );
    if (answer.committed) return "released";
    // A value that was published meanwhile: it may still be the same leadership.
    if (answer.refusal !== "changed" || attempt === MOST_TRIES) return "not-held";
  }
}
