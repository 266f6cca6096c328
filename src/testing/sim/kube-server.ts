/**
 * An API server for Leases, as far as elections need one: get, create and update
 * on resourceVersion, every read through the quorum. Patches and watches are
 * forbidden, as a small Role has it: elections work at the pace of their polls.
 */
import type { Answer, Api, Call } from "../../backends/kubernetes/http.js";
import { fields, parseLease, TERM_ANNOTATION } from "../../backends/kubernetes/lease.js";
import type { LeaseObject } from "../../backends/kubernetes/lease.js";
import type { Entry, RecordStore } from "../../seam/table.js";
import { ConclaveError } from "../../kit/errors.js";

/** Where the record engine's texts are kept (cron, fences). */
const RECORD_ANNOTATION = "conclave/record";

/** The objects as JSON without a version, in a store of versioned texts. */
export class KubeApi implements Api {
  readonly #store: RecordStore;
  readonly #uid: () => string;

  constructor(store: RecordStore, uid: () => string) {
    this.#store = store;
    this.#uid = uid;
  }

  async json(call: Call, signal: AbortSignal): Promise<Answer> {
    const body = fields(call.body);
    const metadata = fields(body["metadata"]);
    switch (call.method) {
      case "GET": {
        const name = decodeURIComponent(call.path.slice(call.path.lastIndexOf("/") + 1));
        const entry = await this.#store.read(name, { signal });
        return entry === null ? { status: 404, body: "{}" } : served(entry);
      }
      case "POST": {
        const text = JSON.stringify({ ...body, metadata: { ...metadata, uid: this.#uid() } });
        const entry = await this.#store.write(String(metadata["name"]), null, text, { signal });
        return entry === null ? refused("AlreadyExists") : served(entry);
      }
      case "DELETE":
        throw new Error("elections of the simulator are never forgotten");
      case "PUT": {
        const { resourceVersion, ...rest } = metadata;
        const expected = BigInt(String(resourceVersion));
        const text = JSON.stringify({ ...body, metadata: rest });
        const entry = await this.#store.write(String(metadata["name"]), expected, text, { signal });
        return entry === null ? refused("Conflict") : served(entry);
      }
      case "PATCH":
        throw forbidden(call.what);
    }
  }

  async open(call: Call): Promise<never> {
    throw forbidden(call.what);
  }

  close(): void {}
}

/** The Lease that a stored text and its version are. */
export function leaseOf(entry: Entry): LeaseObject {
  return parseLease(JSON.parse(served(entry).body));
}

/** The same Lease, with an annotation by which its holder has this token. */
export function withToken(text: string, token: bigint): string {
  const object = fields(JSON.parse(text));
  const { metadata, spec } = { metadata: fields(object["metadata"]), spec: fields(object["spec"]) };
  const term = { v: 1, holder: spec["holderIdentity"], acquireTime: spec["acquireTime"], value: "" };
  const annotations = {
    ...fields(metadata["annotations"]),
    [TERM_ANNOTATION]: JSON.stringify({ ...term, token: token.toString() }),
  };
  return JSON.stringify({ ...object, metadata: { ...metadata, annotations } });
}

/** The record of a cron job or a fence in this text, if it is one. */
export function recordIn(text: string): string | undefined {
  const annotations = fields(fields(fields(JSON.parse(text))["metadata"])["annotations"]);
  const record = annotations[RECORD_ANNOTATION];
  return typeof record === "string" ? record : undefined;
}

function served({ version, record }: Entry): Answer {
  const object = fields(JSON.parse(record));
  const metadata = { ...fields(object["metadata"]), resourceVersion: version.toString() };
  return { status: 200, body: JSON.stringify({ ...object, metadata }) };
}

function refused(reason: string): Answer {
  return { status: 409, body: JSON.stringify({ reason }) };
}

function forbidden(what: string): ConclaveError {
  return new ConclaveError("forbidden", `${what}: the Role does not allow it`);
}
