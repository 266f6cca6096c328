/**
 * A Lease object and what client-go's rules make of it. Pure. What is read from
 * the server is checked field by field; what is not understood is carried over
 * untouched into the next write.
 */
import { ConclaveError, invalid } from "../../kit/errors.js";
import { heirFrom } from "../../kit/heir.js";
import { parseToken } from "../../kit/token.js";
import { checkSize, clampTtl, LARGEST_TEXT } from "../../record/codec.js";
import type { LeaseRecord } from "../../record/lease.js";
import type { Heir } from "../../seam/backend.js";
import { microTime, parseMicroTime } from "./microtime.js";

export type Fields = Readonly<Record<string, unknown>>;

/** A Lease as it came from the server. */
export interface LeaseObject {
  readonly version: bigint;
  readonly metadata: Fields;
  readonly spec: Fields;
  readonly raw: Fields;
}

/** Where the term of a Conclave leader is published, beside what client-go knows. */
export const TERM_ANNOTATION = "conclave/term";
const FORMAT = 1;
const LARGEST_INT32 = 2 ** 31 - 1;
const API_VERSION = "coordination.k8s.io/v1";

/** Reads a Lease from an answer or a watch event. */
export function parseLease(value: unknown): LeaseObject {
  const raw = fields(value);
  const metadata = fields(raw["metadata"]);
  const version = metadata["resourceVersion"];
  if (typeof version !== "string" || !/^[0-9]{1,20}$/.test(version)) {
    throw new ConclaveError(
      "unsupported",
      "the API server sent an object without a numeric resourceVersion, which fencing tokens are made of; use a server that is backed by etcd",
    );
  }
  return { version: BigInt(version), metadata, spec: fields(raw["spec"]), raw };
}

/** Everything client-go looks at to see a renewal: a label edit is none. */
export function renewalIdOf({ spec }: LeaseObject): string {
  return JSON.stringify([
    holderOf(spec),
    spec["leaseDurationSeconds"] ?? null,
    spec["acquireTime"] ?? null,
    spec["renewTime"] ?? null,
    spec["leaseTransitions"] ?? null,
  ]);
}

export function holderOf(spec: Fields): string | null {
  const holder = spec["holderIdentity"];
  return typeof holder === "string" && holder !== "" ? holder : null;
}

/** One leadership, as far as a Lease can tell it from another. */
export function termKey({ spec }: LeaseObject): string {
  return JSON.stringify([holderOf(spec), spec["acquireTime"] ?? null]);
}

interface PublishedTerm {
  readonly token: bigint | null;
  readonly value: string;
  /** Of a Lease that nobody holds: to whom the last leader leaves it. */
  readonly heir?: Heir | undefined;
}

/**
 * The annotation counts only if it names the present holder and term, since
 * client-go keeps it when it takes over, and only with a token that is not above
 * the Lease's own version: no write of this library made another.
 */
export function publishedTerm(lease: LeaseObject): PublishedTerm | undefined {
  const text = fields(lease.metadata["annotations"])[TERM_ANNOTATION];
  if (typeof text !== "string" || text.length > LARGEST_TEXT) return undefined;
  let term: Fields;
  try {
    term = fields(JSON.parse(text));
  } catch {
    return undefined;
  }
  const { v, holder, acquireTime, token, value, heir, heirMs } = term;
  if (v !== FORMAT || holder !== holderOf(lease.spec) || acquireTime !== lease.spec["acquireTime"])
    return undefined;
  if (typeof value !== "string") return undefined;
  if (token === null)
    return { token: null, value, heir: holder === null ? heirFrom(heir, heirMs) : undefined };
  const number = parseToken(token);
  return number === undefined || number > lease.version ? undefined : { token: number, value };
}

/**
 * What the engine sees. `token` is what the caller knows of this term from
 * earlier (the version it was first seen at), used if none is published.
 */
export function recordOf(lease: LeaseObject, token: bigint | null): LeaseRecord {
  const term = publishedTerm(lease);
  const seconds = lease.spec["leaseDurationSeconds"];
  const heir = term?.heir;
  return {
    holder: holderOf(lease.spec),
    ttlMs: typeof seconds === "number" ? clampTtl(seconds * 1000) : null,
    value: term?.value ?? "",
    since: parseMicroTime(lease.spec["acquireTime"]) ?? 0,
    token: term?.token ?? token,
    ...(heir !== undefined && { heir }),
  };
}

export interface LeaseName {
  readonly namespace: string;
  readonly name: string;
}

/** The object that makes `record` true, written on `base` by client-go's rules. `wallMs` is only information for others. */
export function nextLease(
  base: LeaseObject | null,
  at: LeaseName,
  record: LeaseRecord,
  wallMs: number,
): Fields {
  const old = base?.spec ?? {};
  const holder = holderOf(old);
  const renewTime = microTime(wallMs, old["renewTime"]);
  if (record.holder === null) {
    const vacant = { holderIdentity: "", leaseDurationSeconds: 1, acquireTime: renewTime, renewTime };
    const left = vacancyFor(record.heir, renewTime);
    return assemble(base, at, { ...old, ...vacant, leaseTransitions: transitions(old) ?? 0 }, left);
  }
  const renewing = record.token !== null && record.holder === holder;
  const acquireTime = renewing ? old["acquireTime"] : microTime(record.since, old["acquireTime"]);
  const spec = {
    ...old,
    holderIdentity: record.holder,
    leaseDurationSeconds: seconds(record.ttlMs),
    acquireTime,
    // A term begins with both times equal, as client-go writes it.
    renewTime: renewing || acquireTime === old["renewTime"] ? renewTime : acquireTime,
    leaseTransitions: nextTransitions(base, record.holder),
  };
  const term = {
    v: FORMAT,
    holder: record.holder,
    acquireTime,
    token: record.token?.toString() ?? null,
    value: record.value,
  };
  return assemble(base, at, spec, checkSize(JSON.stringify(term)));
}

/** What a vacant Lease says of the heir. It is bound to this vacancy by its time: client-go keeps annotations when it takes over. */
function vacancyFor(heir: Heir | undefined, acquireTime: string): string | undefined {
  if (heir === undefined) return undefined;
  const named = { heir: heir.candidate, heirMs: heir.forMs };
  return JSON.stringify({ v: FORMAT, holder: null, acquireTime, token: null, value: "", ...named });
}

/** Counts changes of the holder, from a released lease too; a first Lease starts at 0. */
function nextTransitions(base: LeaseObject | null, holder: string): number {
  if (base === null) return 0;
  const count = transitions(base.spec) ?? 0;
  return holderOf(base.spec) === holder ? count : Math.min(count + 1, LARGEST_INT32);
}

function transitions(spec: Fields): number | undefined {
  const count = spec["leaseTransitions"];
  return typeof count === "number" && Number.isInteger(count) && count >= 0 && count <= LARGEST_INT32
    ? count
    : undefined;
}

function seconds(ttlMs: number | null): number {
  const whole = Math.ceil((ttlMs ?? 0) / 1000);
  if (whole < 1 || whole > LARGEST_INT32)
    throw invalid(`a Kubernetes Lease lasts 1 to ${LARGEST_INT32} whole seconds, not ${ttlMs} ms`);
  return whole;
}

function assemble(base: LeaseObject | null, at: LeaseName, spec: Fields, term: string | undefined): Fields {
  if (base === null) {
    return {
      apiVersion: API_VERSION,
      kind: "Lease",
      metadata: { ...at, ...(term !== undefined && { annotations: { [TERM_ANNOTATION]: term } }) },
      spec,
    };
  }
  const { [TERM_ANNOTATION]: _replaced, ...annotations } = fields(base.metadata["annotations"]);
  return {
    ...base.raw,
    apiVersion: API_VERSION,
    kind: "Lease",
    metadata: {
      ...base.metadata,
      annotations: { ...annotations, ...(term !== undefined && { [TERM_ANNOTATION]: term }) },
    },
    spec,
  };
}

/** Lease names are DNS-1123 subdomains: the election's name is the Lease's, so that other clients can campaign in it. */
export function checkLeaseName(election: string): string {
  if (
    election.length <= 253 &&
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(election)
  )
    return election;
  throw invalid(
    `"${election}" cannot name a Kubernetes Lease: use lower-case letters, digits, "-" and ".", beginning and ending with a letter or digit`,
  );
}

export function checkNamespace(namespace: string): string {
  if (namespace.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(namespace)) return namespace;
  throw invalid(
    `"${namespace}" is not the name of a Kubernetes namespace: use lower-case letters, digits and "-"`,
  );
}

export function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}
