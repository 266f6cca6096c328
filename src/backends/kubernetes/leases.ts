/**
 * The requests an election needs: get, create, update, patch and watch of one
 * Lease. Only whoever asks which elections there are needs the right to list.
 */
import type { IncomingMessage } from "node:http";
import type { CallOptions } from "../../seam/backend.js";
import { ConclaveError } from "../../kit/errors.js";
import { failure, refusalOf } from "./failures.js";
import type { Answer, Api } from "./http.js";
import type { Fields, LeaseObject } from "./lease.js";
import { fields, parseLease } from "./lease.js";
import type { PatchStep } from "./patch.js";

/** Small: a Lease may carry a value of many kilobytes. */
const PAGE = 100;

export class Leases {
  readonly #client: Api;
  readonly namespace: string;

  constructor(client: Api, namespace: string) {
    this.#client = client;
    this.namespace = namespace;
  }

  /** The Lease as of now (a read through the server's quorum), or `null`. */
  async get(name: string, { signal }: CallOptions): Promise<LeaseObject | null> {
    const what = `reading Lease ${this.namespace}/${name}`;
    const answer = await this.#client.json({ method: "GET", path: this.#path(name), what }, signal);
    return answer.status === 404 ? null : parsed(answer, what);
  }

  /** `null`: it exists already. */
  async create(name: string, body: Fields, { signal }: CallOptions): Promise<LeaseObject | null> {
    const what = `creating Lease ${this.namespace}/${name}`;
    const answer = await this.#client.json({ method: "POST", path: this.#path(), body, what }, signal);
    if (answer.status !== 409) return parsed(answer, what);
    const refusal = refusalOf(answer.status, answer.body);
    if (refusal.reason === "AlreadyExists") return null;
    throw failure(what, refusal);
  }

  /**
   * `null`: the object's resourceVersion is not current, or it is gone. The
   * body must carry resourceVersion *and* uid: an update of a deleted Lease
   * would otherwise create it anew.
   */
  async update(name: string, body: Fields, { signal }: CallOptions): Promise<LeaseObject | null> {
    const what = `updating Lease ${this.namespace}/${name}`;
    const answer = await this.#client.json({ method: "PUT", path: this.#path(name), body, what }, signal);
    return answer.status === 404 || answer.status === 409 ? null : parsed(answer, what);
  }

  /** `null`: the object is not as the patch demands, or it is gone. */
  async patch(
    name: string,
    steps: readonly PatchStep[],
    { signal }: CallOptions,
  ): Promise<LeaseObject | null> {
    const what = `patching Lease ${this.namespace}/${name}`;
    const contentType = "application/json-patch+json";
    const call = { method: "PATCH", path: this.#path(name), body: steps, contentType, what } as const;
    const answer = await this.#client.json(call, signal);
    return [404, 409, 422].includes(answer.status) ? null : parsed(answer, what);
  }

  /** `false`: the object is not this one any more, and was left alone. Needs the right to delete. */
  async remove(name: string, { metadata, version }: LeaseObject, { signal }: CallOptions): Promise<boolean> {
    const what = `deleting Lease ${this.namespace}/${name}`;
    const body = {
      apiVersion: "v1",
      kind: "DeleteOptions",
      preconditions: { uid: metadata["uid"], resourceVersion: version.toString() },
    };
    const answer = await this.#client.json({ method: "DELETE", path: this.#path(name), body, what }, signal);
    if (answer.status === 404 || answer.status === 409) return false;
    if (answer.status >= 400) throw failure(what, refusalOf(answer.status, answer.body));
    return true;
  }

  /** Opens a watch of this one object, after `since` if given, else from its present state. */
  watch(
    name: string,
    since: bigint | undefined,
    timeoutSeconds: number,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const query = new URLSearchParams({
      watch: "1",
      fieldSelector: `metadata.name=${name}`,
      allowWatchBookmarks: "true",
      timeoutSeconds: String(timeoutSeconds),
      ...(since !== undefined && { resourceVersion: since.toString() }),
    });
    const what = `watching Lease ${this.namespace}/${name}`;
    return this.#client.open({ method: "GET", path: `${this.#path()}?${query.toString()}`, what }, signal);
  }

  /** One page of the Leases of the namespace, and how to ask for the next. */
  async list(
    next: string | undefined,
    { signal }: CallOptions,
  ): Promise<{ readonly leases: readonly Fields[]; readonly next: string | undefined }> {
    const what = `listing the Leases of namespace ${this.namespace}`;
    const query = new URLSearchParams({ limit: String(PAGE), ...(next !== undefined && { continue: next }) });
    const call = { method: "GET", path: `${this.#path()}?${query.toString()}`, what } as const;
    const list = jsonOf(await this.#client.json(call, signal), what);
    const items = list["items"];
    const more = fields(list["metadata"])["continue"];
    return {
      leases: Array.isArray(items) ? items.map(fields) : [],
      next: typeof more === "string" && more !== "" ? more : undefined,
    };
  }

  #path(name?: string): string {
    const base = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(this.namespace)}/leases`;
    return name === undefined ? base : `${base}/${encodeURIComponent(name)}`;
  }
}

function parsed(answer: Answer, what: string): LeaseObject {
  return parseLease(jsonOf(answer, what));
}

function jsonOf(answer: Answer, what: string): Fields {
  if (answer.status >= 400) throw failure(what, refusalOf(answer.status, answer.body));
  try {
    return fields(JSON.parse(answer.body));
  } catch (error) {
    throw new ConclaveError("unavailable", `${what}: the answer is not JSON; is this an API server?`, {
      cause: error,
    });
  }
}

/** One line of a watch. */
export type WatchEvent =
  | { readonly kind: "present"; readonly lease: LeaseObject }
  | { readonly kind: "deleted"; readonly lease: LeaseObject }
  /** Nothing happened, up to and including this version. */
  | { readonly kind: "bookmark"; readonly version: bigint }
  /** The server cannot go on from where we were: read the object afresh. */
  | { readonly kind: "gone" }
  | { readonly kind: "failed"; readonly error: ConclaveError };

export function parseEvent(line: string, what: string): WatchEvent {
  let event: Fields;
  try {
    event = fields(JSON.parse(line));
  } catch (error) {
    return {
      kind: "failed",
      error: new ConclaveError("unavailable", `${what}: a watch event is not JSON`, { cause: error }),
    };
  }
  const { type, object } = event;
  if (type === "ERROR") {
    const status = fields(object)["code"];
    if (status === 410) return { kind: "gone" };
    const code = typeof status === "number" ? status : 500;
    return { kind: "failed", error: failure(what, refusalOf(code, JSON.stringify(object))) };
  }
  const lease = parseLease(object);
  if (type === "BOOKMARK") return { kind: "bookmark", version: lease.version };
  return { kind: type === "DELETED" ? "deleted" : "present", lease };
}
