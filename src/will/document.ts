/**
 * The text of a will: whose it is, and what to give back. Read by another
 * process: hostile until checked.
 */
import { parseToken } from "../kit/token.js";
import type { Claim } from "../seam/backend.js";
import type { ListedProcess, Place } from "./processes.js";

const FORMAT = 1;

/** Leaderships in one store. */
export interface Bequest {
  /** Opens the store. It may hold a password: a will is a file that only its owner can read. */
  readonly url: string;
  /** Modules that register the backend of this URL. */
  readonly imports: readonly string[];
  readonly claims: readonly Claim[];
}

export interface Will {
  readonly place: Place;
  /** The process whose will it is comes first. All of them must be dead. */
  readonly processes: readonly ListedProcess[];
  /** Why nothing may be given back though all listed processes are dead: others may act that nobody knows of. */
  readonly doubt: string | null;
  readonly bequests: readonly Bequest[];
}

export function encodeWill({ place, processes, doubt, bequests }: Will): string {
  const estate = bequests.map(({ url, imports, claims }) => ({
    ...{ url, imports },
    claims: claims.map((claim) => ({ ...claim, token: String(claim.token) })),
  }));
  return `${JSON.stringify({ v: FORMAT, place, processes, doubt, bequests: estate })}\n`;
}

/** `null`: this is no will, or one of another release. Then nothing is given back. */
export function decodeWill(text: string): Will | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return null;
  }
  const { v, place, processes, doubt, bequests } = fields(parsed);
  if (v !== FORMAT || (doubt !== null && typeof doubt !== "string")) return null;
  const { bootId, pidNamespace } = fields(place);
  if (!isTextOrNull(bootId) || !isTextOrNull(pidNamespace)) return null;
  const listed = all(processes, decodeProcess);
  const estate = all(bequests, decodeBequest);
  if (listed === null || listed.length === 0 || estate === null) return null;
  return { place: { bootId, pidNamespace }, processes: listed, doubt, bequests: estate };
}

function decodeProcess(value: unknown): ListedProcess | null {
  const { pid, started } = fields(value);
  // Zero and negative numbers would ask about whole process groups.
  if (typeof pid !== "number" || !Number.isInteger(pid) || pid <= 0) return null;
  return isTextOrNull(started) ? { pid, started } : null;
}

function decodeBequest(value: unknown): Bequest | null {
  const { url, imports, claims } = fields(value);
  const modules = all(imports, (each) => (typeof each === "string" ? each : null));
  const decoded = all(claims, decodeClaim);
  if (typeof url !== "string" || modules === null || decoded === null) return null;
  return { url, imports: modules, claims: decoded };
}

function decodeClaim(value: unknown): Claim | null {
  const { election, candidate, token } = fields(value);
  const number = parseToken(token);
  if (typeof election !== "string" || typeof candidate !== "string" || number === undefined) return null;
  return { election, candidate, token: number };
}

/** `null` if it is no list, or one of them is not what it should be. */
function all<T>(value: unknown, decode: (each: unknown) => T | null): T[] | null {
  if (!Array.isArray(value)) return null;
  const decoded = value.map(decode);
  return decoded.some((each) => each === null) ? null : (decoded as T[]);
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}
