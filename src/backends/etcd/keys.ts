/**
 * Where elections live in etcd. The queue layout is that of Go's
 * `concurrency.Election`, byte for byte: `<name>/<hex lease>`.
 */
import { ConclaveError, invalid } from "../../kit/errors.js";
import type { KeyValue } from "./client.js";

/** Records are kept apart from elections, so that neither can be taken for the other. */
const RECORDS = "conclave.records/";
/**
 * Identity keys hold the candidates' ids: Go's layout has no place for an id
 * next to the value. Each is attached to the candidate's lease, and written and
 * removed in the same transactions as the candidate's key.
 */
const IDENTITIES = "conclave.candidates/";

const HEX_LEASE = /^[0-9a-f]{1,16}$/;

/** As Go prints an int64 with %x: lower case, no padding. */
export function hex(lease: bigint): string {
  return lease.toString(16);
}

export class Keys {
  readonly #root: string;

  /** `root`: empty, or a prefix that ends with a slash. */
  constructor(root: string) {
    if (root !== "" && !root.endsWith("/"))
      throw invalid(`the key prefix ${JSON.stringify(root)} must end with a slash`);
    this.#root = root;
  }

  /** Key of the election itself, for the layout of one key. */
  election(name: string): string {
    if ([RECORDS, IDENTITIES].some((taken) => `${name}/`.startsWith(taken))) {
      throw invalid(`election name ${JSON.stringify(name)} is taken by this library; choose another`);
    }
    return this.#root + name;
  }

  /** Keys of an election's candidates: from `key` up to, not including, `rangeEnd`. */
  queue(name: string): { readonly key: string; readonly rangeEnd: string } {
    const key = this.election(name);
    return { key: `${key}/`, rangeEnd: `${key}0` }; // "0" follows "/"
  }

  /** The candidate's identity key. */
  identity(name: string, lease: bigint): string {
    return `${this.#root}${IDENTITIES}${hex(lease)}/${name}`;
  }

  /** Whom the leader is about to hand its leadership to. Among the identity keys: whoever may write those may write it. */
  heir(name: string): string {
    return `${this.#root}${IDENTITIES}heir/${name}`;
  }

  /** Who let the others go first at the present vacancy. */
  turn(name: string): string {
    return `${this.#root}${IDENTITIES}turn/${name}`;
  }

  /** All keys below the prefix. */
  all(): { readonly key: string; readonly rangeEnd: string } {
    if (this.#root === "") return { key: "\0", rangeEnd: "\0" }; // etcd's way to say "every key"
    return { key: this.#root, rangeEnd: `${this.#root.slice(0, -1)}0` }; // "0" follows "/"
  }

  /** Name of the election whose own key this is (layout of one key). */
  nameOf(key: string): string | undefined {
    if (!key.startsWith(this.#root)) return undefined;
    const name = key.slice(this.#root.length);
    return [RECORDS, IDENTITIES].some((taken) => name.startsWith(taken)) ? undefined : name;
  }

  /** Name of the election to whose queue this key belongs. */
  queueOf(key: string): string | undefined {
    const slash = key.lastIndexOf("/");
    return HEX_LEASE.test(key.slice(slash + 1)) ? this.nameOf(key.slice(0, Math.max(0, slash))) : undefined;
  }

  record(name: string): string {
    return this.#root + RECORDS + name;
  }

  /** Keys of all records. */
  records(): { readonly key: string; readonly rangeEnd: string } {
    const key = this.record("");
    return { key, rangeEnd: `${key.slice(0, -1)}0` };
  }
}

/**
 * The candidate's lease, in hex. Anything else below the election's prefix is
 * not a candidate of it: `a/b/7` is one of `a/b`, and whoever ignored that
 * would see a leader where there is none.
 */
export function candidateId(prefix: string, kv: KeyValue): string {
  const rest = kv.key.slice(prefix.length);
  if (kv.key.startsWith(prefix) && HEX_LEASE.test(rest)) return rest;
  throw new ConclaveError(
    "conflict",
    `key ${JSON.stringify(kv.key)} lies below ${JSON.stringify(prefix)} but is no candidate of that election: ` +
      `names must not nest ("a" and "a/b"); rename one of the elections, or remove the key`,
  );
}
