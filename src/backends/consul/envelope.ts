/**
 * What a leader of ours writes into the key: who it is, since the lock has room
 * for a value only. Other programs write what they like; their leaders are known
 * by their session.
 */
import { heirFrom } from "../../kit/heir.js";
import type { Heir, Leader } from "../../seam/backend.js";
import { parseToken } from "../../kit/token.js";
import { property } from "./client/json.js";
import type { KeyValue } from "./client.js";

export interface Envelope {
  readonly candidate: string;
  readonly value: string;
  readonly session: string;
  /** How long Consul keeps the lock closed if the session ends. */
  readonly lockDelayMs: number;
  /** Written with every new value. The first write cannot have it: there it is the key's modify index. */
  readonly token?: bigint | undefined;
  /** When the term began, by the leader's wall clock. */
  readonly since?: number | undefined;
}

const LONGEST_CANDIDATE = 1_000;
const LONGEST_HEIR_TEXT = 2_000;

export function seal({ candidate, value, session, lockDelayMs, token, since }: Envelope): string {
  return JSON.stringify({
    conclave: 1,
    ...{ candidate, value, session, lockDelayMs, since },
    ...(token !== undefined && { token: String(token) }),
  });
}

/** What is in a key's value, if one of ours wrote it; it need not be the one who holds the lock now. */
export function unseal({ value, modifyIndex }: KeyValue): Envelope | undefined {
  if (!value.startsWith('{"conclave":1,')) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(value);
  } catch {
    return undefined;
  }
  const candidate = property(parsed, "candidate");
  const text = property(parsed, "value");
  const session = property(parsed, "session");
  const lockDelayMs = property(parsed, "lockDelayMs");
  const since = property(parsed, "since");
  const written = property(parsed, "token");
  const token = parseToken(written);
  if (typeof candidate !== "string" || candidate === "" || candidate.length > LONGEST_CANDIDATE)
    return undefined;
  if (typeof text !== "string" || typeof session !== "string") return undefined;
  // A token is the index of an earlier write of this key.
  if (written !== undefined && (token === undefined || token > modifyIndex)) return undefined;
  const delay = typeof lockDelayMs === "number" && lockDelayMs >= 0 ? lockDelayMs : 0;
  return {
    ...{ candidate, value: text, session, lockDelayMs: delay, token },
    ...(typeof since === "number" && Number.isFinite(since) && { since }),
  };
}

/** What a leader leaves in a key that it gives back to somebody. Whoever does not know of heirs takes the lock. */
export function sealHeir({ candidate, forMs }: Heir): string {
  return JSON.stringify({ conclave: 1, heir: candidate, forMs });
}

/** For whom a free key was left. Not what somebody wrote into a key that is held. */
export function heirIn({ value, session }: KeyValue): Heir | undefined {
  if (session !== undefined || value.length > LONGEST_HEIR_TEXT || !value.startsWith('{"conclave":1,"heir":'))
    return undefined;
  try {
    const parsed: unknown = JSON.parse(value);
    return heirFrom(property(parsed, "heir"), property(parsed, "forMs"));
  } catch {
    return undefined;
  }
}

/** Who holds the lock. Of another program: its session, and the value as it is. */
export function leaderFromKey(kv: KeyValue): Leader | null {
  if (kv.session === undefined) return null;
  const envelope = unseal(kv);
  if (envelope?.session !== kv.session)
    return { candidate: kv.session, token: kv.modifyIndex, value: kv.value };
  const { candidate, value, token, since } = envelope;
  return { candidate, token: token ?? kv.modifyIndex, value, ...(since !== undefined && { since }) };
}
