/**
 * Where elections live in Consul, and what is written there. Both layouts are
 * those of Go's `api.Lock`: one key, locked by a session, with the flag of a lock.
 */
import { ConclaveError, invalid } from "../../kit/errors.js";
import type { KeyValue } from "./client.js";

/**
 * `lock`: the key `<name>/.lock`, as the command `consul lock <name>` has it.
 * `key`: the key `<name>`, as a Go program has it that calls `LockKey(name)`.
 */
export type ConsulLayout = "lock" | "key";

/** `api.LockFlagValue`. */
export const LOCK_FLAG = 0x2ddccbc058a50c18n;

/** Records are kept apart from elections, so that neither can be taken for the other. */
const RECORDS = "conclave.records/";
const SUFFIX = "/.lock";

/** Consul's HTTP server refuses paths with characters that are not printable: all of these but the space. */
const UNPRINTABLE = /[\p{C}\p{Z}]/u;

export class Keys {
  readonly root: string;
  readonly #suffix: string;

  /** `root`: empty, or a prefix that ends with a slash. */
  constructor(root: string, layout: ConsulLayout) {
    this.root = root;
    this.#suffix = layout === "lock" ? SUFFIX : "";
  }

  election(name: string): string {
    const refused = refusal(name);
    if (refused !== undefined)
      throw invalid(`election name ${JSON.stringify(name)} ${refused}: choose another for Consul`);
    return this.root + name + this.#suffix;
  }

  /** Name of the election whose key this is. */
  nameOf(key: string): string | undefined {
    if (!key.startsWith(this.root) || !key.endsWith(this.#suffix)) return undefined;
    const name = key.slice(this.root.length, key.length - this.#suffix.length);
    return refusal(name) === undefined ? name : undefined;
  }

  /** Any name will do: it is encoded. */
  record(name: string): string {
    const encoded = encodeURIComponent(name);
    return this.records + (/^\.+$/.test(encoded) ? encoded.replaceAll(".", "%2E") : encoded);
  }

  /** What keys of records begin with. */
  get records(): string {
    return this.root + RECORDS;
  }

  /** Name of the record whose key this is; `undefined`: something else put it there. */
  recordOf(key: string): string | undefined {
    try {
      return decodeURIComponent(key.slice(this.records.length));
    } catch {
      return undefined;
    }
  }
}

/** Why no key can be made of this name. Consul's HTTP server rewrites paths with parts that are empty or dots. */
function refusal(name: string): string | undefined {
  if (`${name}/`.startsWith(RECORDS)) return "is taken by this library";
  if (name.split("/").some((part) => part === "" || part === "." || part === ".."))
    return 'has a part between slashes that is empty, "." or ".."';
  return UNPRINTABLE.test(name.replaceAll(" ", "")) ? "holds an invisible character" : undefined;
}

/** Throws if the key is no lock: somebody keeps something else there, and it is left alone. */
export function assertLock(kv: KeyValue): void {
  if (kv.flags === LOCK_FLAG) return;
  throw new ConclaveError(
    "conflict",
    `key ${JSON.stringify(kv.key)} is there but is no lock (its flags are ${kv.flags}, those of a lock are ${LOCK_FLAG}): ` +
      "something else keeps data in it; choose another election name or prefix, or remove the key",
  );
}
