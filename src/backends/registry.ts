/**
 * Which backend a URL opens: the library's own, and those that others brought.
 * The latter are kept for the whole process, not for this copy of the library: a
 * program and its command line may each have installed one, and mean the same
 * schemes. A store's client is loaded only when a URL of its scheme is opened.
 */
import { invalid } from "../kit/errors.js";
import type { Backend } from "../seam/backend.js";
import type { BackendEntry, OpenOptions } from "../seam/entry.js";
import { bully } from "./bully/entry.js";
import { consul } from "./consul/entry.js";
import { etcd } from "./etcd/entry.js";
import { file } from "./file/entry.js";
import { kubernetes } from "./kubernetes/entry.js";
import { memory } from "./memory/entry.js";
import { raft } from "./raft/entry.js";
import { postgres } from "./postgres/entry.js";
import { redis } from "./redis/entry.js";
import { zookeeper } from "./zookeeper/entry.js";

/** Every backend of the library. The docs' table, the CLI's flags and help, and the conformance matrix are made from this list. */
export const backends: readonly BackendEntry[] = [
  file,
  etcd,
  kubernetes,
  consul,
  zookeeper,
  redis,
  postgres,
  raft,
  bully,
  memory,
];

/** Opens a backend for a URL of its scheme. The caller closes what was opened. */
export type BackendOpener = (url: URL, options: OpenOptions) => Backend | Promise<Backend>;

/** What is known of a registered scheme. */
export interface RegisterOptions {
  /** A URL of this scheme, for help and error messages. No credentials in it. Default `scheme://…`. */
  readonly example?: string;
  /** Environment variables it reads credentials from. Commands that `conclave exec`, `lock` and `cron` run do not get them. */
  readonly secrets?: readonly string[];
}

interface Registered {
  readonly open: BackendOpener;
  readonly example: string;
  readonly secrets: readonly string[];
}

const KEY = Symbol.for("conclave.backends");

function registered(): Map<string, Registered> {
  const known: unknown = Reflect.get(globalThis, KEY);
  if (known instanceof Map) return known as Map<string, Registered>;
  const made = new Map<string, Registered>();
  Reflect.set(globalThis, KEY, made);
  return made;
}

/** The library's backend for URLs of this scheme. */
export function ownBackend(scheme: string): BackendEntry | undefined {
  return backends.find(({ schemes }) => schemes.includes(scheme));
}

export function registeredOpener(scheme: string): BackendOpener | undefined {
  return registered().get(scheme)?.open;
}

/** URLs that could be opened, for help and error messages. */
export function examples(): string {
  return [...backends, ...registered().values()].map(({ example }) => example).join(", ");
}

/** Environment variables that any backend reads credentials from. */
export function secretVariables(): ReadonlySet<string> {
  return new Set([...backends, ...registered().values()].flatMap(({ secrets }) => secrets ?? []));
}

/**
 * Makes URLs of a scheme open a backend of your own: in `openBackend`,
 * `openElection`, and on the command line if its `--import` names the module that
 * calls this. Schemes of the library's own backends cannot be taken. Returns a
 * function that undoes it.
 */
export function registerBackend(
  scheme: string,
  open: BackendOpener,
  options: RegisterOptions = {},
): () => void {
  if (ownBackend(scheme) !== undefined)
    throw invalid(`"${scheme}:" URLs open a backend of the library itself; choose another scheme`);
  if (!/^[a-z][a-z0-9+.-]*$/.test(scheme))
    throw invalid(
      `"${scheme}" is no URL scheme: write lower-case letters, digits, "+", "." and "-", without the colon`,
    );
  const all = registered();
  const known = all.get(scheme);
  if (known !== undefined && known.open !== open)
    throw invalid(`a backend for "${scheme}:" URLs is registered already; choose another scheme`);
  const { example = `${scheme}://…`, secrets = [] } = options;
  const entry = { open, example, secrets };
  all.set(scheme, entry);
  return () => {
    if (all.get(scheme) === entry) all.delete(scheme);
  };
}
