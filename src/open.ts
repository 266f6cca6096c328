/**
 * A URL opens one room. Rooms are loaded only when their scheme is asked for, so
 * that a program on files never loads a client for a store it does not use.
 */
import type { Backend, Guarantees } from "./seam/backend.js";
import { Election } from "./election/election.js";
import type { ElectionOptions } from "./api/options.js";
import { invalid } from "./kit/errors.js";
import { register, registeredExamples, registeredOpener } from "./backends/registry.js";
import type { BackendOpener, OpenOptions, RegisterOptions } from "./backends/registry.js";

export type { BackendOpener, OpenOptions, RegisterOptions } from "./backends/registry.js";

export interface Room {
  readonly name: string;
  /** Schemes of its URLs, without the colon. */
  readonly schemes: readonly string[];
  /** Shown in help and error messages. No credentials in it. */
  readonly example: string;
  open(url: URL, options: OpenOptions): Promise<Backend>;
  /** For URLs that Node's URL cannot hold (several hosts with ports): given the text as it is, instead of {@link open}. */
  openText?(url: string, options: OpenOptions): Promise<Backend>;
  /** What its backends declare, for the table in the docs. */
  guarantees(): Promise<Guarantees>;
}

/** Two who name the same URL mean the same store, and must not both lead: one for the process. */
const memories = new Map<string, Promise<Backend>>();

const memory: Room = {
  name: "memory",
  schemes: ["memory"],
  example: "memory:",
  open: (url) => {
    const opened =
      memories.get(url.href) ??
      import("./backends/memory/index.js").then(({ memoryBackend }) => memoryBackend());
    memories.set(url.href, opened);
    return opened;
  },
  guarantees: async () => (await import("./backends/memory/index.js")).memoryBackend().guarantees,
};

const file: Room = {
  name: "file",
  schemes: ["file"],
  example: "file:///directory",
  open: async (url, options) => (await import("./backends/file/url.js")).openFile(url, options),
  guarantees: async () => (await import("./backends/file/index.js")).fileBackend().guarantees,
};

const kubernetes: Room = {
  name: "kubernetes",
  schemes: ["kubernetes"],
  example: "kubernetes:///namespace",
  open: async (url) => (await import("./backends/kubernetes/index.js")).openKubernetes(url),
  guarantees: async () => (await import("./backends/kubernetes/index.js")).GUARANTEES,
};

const etcd: Room = {
  name: "etcd",
  schemes: ["etcd", "etcds"],
  example: "etcd://host:2379,host:2379/prefix",
  open: async (url) => (await import("./backends/etcd/index.js")).openEtcd(url),
  openText: async (url) => (await import("./backends/etcd/index.js")).openEtcd(url),
  guarantees: async () => (await import("./backends/etcd/index.js")).etcdBackend({ env: {} }).guarantees,
};

/** Every room there is. The docs' table, the CLI's help and the conformance matrix are made from this list. */
export const rooms: readonly Room[] = [file, etcd, kubernetes, memory];

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
  if (rooms.some(({ schemes }) => schemes.includes(scheme)))
    throw invalid(`"${scheme}:" URLs open a backend of the library itself; choose another scheme`);
  return register(scheme, open, options.example);
}

/** Opens the backend a URL names; without one, files in the user's own directory. */
export async function openBackend(url: string | URL = "file:", options: OpenOptions = {}): Promise<Backend> {
  const scheme =
    typeof url === "string"
      ? (/^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase() ?? "")
      : url.protocol.slice(0, -1);
  const room = rooms.find((candidate) => candidate.schemes.includes(scheme));
  if (typeof url === "string" && room?.openText !== undefined) return room.openText(url, options);
  const parsed = parse(url);
  if (room !== undefined) return room.open(parsed, options);
  const open = registeredOpener(scheme);
  if (open !== undefined) return open(parsed, options);
  throw invalid(`no backend for "${scheme}:" URLs; use one of ${examples()}, or register your own`);
}

/** What {@link openElection} takes. */
export interface OpenElectionOptions extends Omit<ElectionOptions, "backend" | "closeBackend">, OpenOptions {
  /** A backend, or the URL of one; default: files in the user's own directory. */
  readonly backend?: Backend | string | URL | undefined;
}

/** An election on a URL. A backend that was opened here is closed with the election. */
export async function openElection(options: OpenElectionOptions): Promise<Election> {
  const { backend, processes, ...rest } = options;
  if (typeof backend === "object" && !(backend instanceof URL)) return new Election({ ...rest, backend });
  const opened = await openBackend(backend, { processes });
  try {
    return new Election({ ...rest, backend: opened, closeBackend: true });
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    throw error;
  }
}

function parse(url: string | URL): URL {
  if (url instanceof URL) return url;
  // Read by the URL rules this would be a path from the root; whoever writes it means another.
  if (/^file:(?!\/\/)./i.test(url))
    throw invalid("write file:///directory with the whole path, or just file:");
  try {
    return new URL(url);
  } catch {
    // The text is not repeated: it may hold a password.
    throw invalid(`the backend URL cannot be read; it looks like ${examples()}`);
  }
}

function examples(): string {
  return [...rooms.map(({ example }) => example), ...registeredExamples()].join(", ");
}
