/**
 * A write on a Lease that others edit all the time. An update names the version
 * it was made for, so whoever edits labels faster than one round trip makes
 * every update fail, and the leader's lease runs out. A JSON patch names the
 * fields that must still be as they were read and leaves everything else alone:
 * the server applies it to whatever version is current. Pure.
 */
import type { Fields, LeaseObject } from "./lease.js";
import { fields, TERM_ANNOTATION } from "./lease.js";

/** The fields of a Lease that are its record: holder, times, duration, count. */
const RECORD_FIELDS = [
  "holderIdentity",
  "leaseDurationSeconds",
  "acquireTime",
  "renewTime",
  "leaseTransitions",
] as const;
const TERM_PATH = `/metadata/annotations/${TERM_ANNOTATION.replace("/", "~1")}`;

export interface PatchStep {
  readonly op: "test" | "add" | "remove";
  readonly path: string;
  readonly value?: unknown;
}

/** Whether two versions of a Lease hold the same record: only what no election looks at was edited in between. */
export function sameRecord(a: LeaseObject, b: LeaseObject): boolean {
  return recordText(a) === recordText(b);
}

function recordText({ metadata, spec }: LeaseObject): string {
  return JSON.stringify([
    metadata["uid"],
    RECORD_FIELDS.map((name) => spec[name] ?? null),
    fields(metadata["annotations"])[TERM_ANNOTATION] ?? null,
  ]);
}

/**
 * The steps that turn the record of `base` into that of `body`, if the record is
 * still that of `base`; `undefined` where a patch cannot say so. Every write
 * changes renewTime, so two records with equal fields are one record.
 */
export function leasePatch(base: LeaseObject, body: Fields): readonly PatchStep[] | undefined {
  const annotations = base.metadata["annotations"];
  const uid = base.metadata["uid"];
  if (typeof uid !== "string" || typeof base.spec["renewTime"] !== "string") return undefined;
  const before = fields(annotations)[TERM_ANNOTATION];
  const after = fields(fields(body["metadata"])["annotations"])[TERM_ANNOTATION];
  // A step cannot add to annotations that are not there.
  if (after !== undefined && annotations === undefined) return undefined;
  const spec = fields(body["spec"]);
  const steps: PatchStep[] = [{ op: "test", path: "/metadata/uid", value: uid }];
  for (const name of RECORD_FIELDS)
    if (base.spec[name] !== undefined)
      steps.push({ op: "test", path: `/spec/${name}`, value: base.spec[name] });
  if (before !== undefined) steps.push({ op: "test", path: TERM_PATH, value: before });
  for (const name of RECORD_FIELDS) steps.push({ op: "add", path: `/spec/${name}`, value: spec[name] });
  if (after !== undefined) steps.push({ op: "add", path: TERM_PATH, value: after });
  else if (before !== undefined) steps.push({ op: "remove", path: TERM_PATH });
  return steps;
}
