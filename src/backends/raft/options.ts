/** What can be said about a cluster, in code or by a URL, and what of it is refused. */
import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { invalid } from "../../kit/errors.js";
import type { Clock } from "../../seam/clock.js";
import type { Address, Peer } from "./address.js";
import {
  addressText,
  checkPeers,
  clusterId,
  isLoopback,
  listText,
  parseAddress,
  parsePeer,
} from "./address.js";
import { doubtOfKeyFile } from "./doubts.js";
import { sharedKey, SHORTEST_KEY } from "./key.js";

/** How a process takes part in elections among peers. */
export interface RaftOptions {
  /** All voters, the same list in every process: `["n1@10.0.0.1:7400", …]`. Three or five. */
  readonly peers: readonly string[];
  /** Which of them this process is. Left out: it stands and observes, but does not vote. */
  readonly self?: string | undefined;
  /** Where this voter keeps its journal: a directory of its own, on a disk that outlives the process. Needed with `self`. */
  readonly dir?: string | undefined;
  /** The key that all share, at least 32 bytes. A frame without it is not looked at. Nothing is encrypted. */
  readonly key?: string | Uint8Array | undefined;
  /** A file with the key, instead of `key`. */
  readonly keyFile?: string | undefined;
  /** Where this voter listens, if not at its address in the list: `"0.0.0.0:7400"`. */
  readonly bind?: string | undefined;
  /** Where this process reaches a voter, if not at its address in the list (a tunnel, a forwarded port). */
  readonly dial?: Readonly<Record<string, string>> | undefined;
  /** Works without a key, and only if every address is one of this machine (127.0.0.1, ::1, localhost). */
  readonly insecure?: boolean | undefined;
  /** Told in plain lines what a voter cannot say otherwise: why it does not take part, who was refused. */
  readonly log?: ((line: string) => void) | undefined;
  readonly clock?: Clock | undefined;
}

/** Checked. */
export interface RaftConfig {
  readonly peers: readonly Peer[];
  readonly cluster: string;
  readonly list: string;
  readonly self?: Peer | undefined;
  readonly dir?: string | undefined;
  readonly bind?: Address | undefined;
  readonly dial: Readonly<Record<string, Address>>;
  readonly secret: Buffer;
  /** What the operator should know, though it works. */
  readonly doubt?: string | undefined;
}

const KEY_VARIABLE = "CONCLAVE_RAFT_KEY";

export function checkOptions(options: RaftOptions, env: NodeJS.ProcessEnv = process.env): RaftConfig {
  const peers = checkPeers(options.peers.map(parsePeer));
  const self = peers.find(({ name }) => name === options.self);
  const names = peers.map(({ name }) => name).join(", ");
  if (options.self !== undefined && self === undefined)
    throw invalid(`self is "${options.self}", which is not in the list; it must be one of ${names}`);
  if (self !== undefined && options.dir === undefined)
    throw invalid(
      `voter "${self.name}" needs a directory for its journal: pass dir (in a URL: &dir=/var/lib/app/raft)`,
    );
  for (const name of Object.keys(options.dial ?? {}))
    if (!peers.some((peer) => peer.name === name))
      throw invalid(`dial names "${name}", which is not in the list: ${names}`);
  const bind = options.bind === undefined ? self : parseAddress(options.bind);
  const dial = Object.fromEntries(
    Object.entries(options.dial ?? {}).map(([name, text]) => [name, parseAddress(text)]),
  );
  const everywhere = [...peers, ...Object.values(dial), ...(bind === undefined ? [] : [bind])];
  return {
    peers,
    cluster: clusterId(peers),
    list: listText(peers),
    self,
    dir: options.dir === undefined ? undefined : resolve(options.dir),
    bind,
    dial,
    secret: secretOf(options, everywhere, env),
    // Of a voter: it is a service, while commands that only ask are run again and again.
    doubt: self === undefined || options.keyFile === undefined ? undefined : doubtOfKeyFile(options.keyFile),
  };
}

function secretOf(options: RaftOptions, addresses: readonly Address[], env: NodeJS.ProcessEnv): Buffer {
  const { key, keyFile } = options;
  const given = sharedKey({ key, keyFile, variable: env[KEY_VARIABLE] });
  if (given === undefined) {
    if (options.insecure !== true)
      throw invalid(
        `peers need a shared key: pass key-file=… (a file with at least ${SHORTEST_KEY} bytes, for example the output of: openssl rand -hex 32), or set ${KEY_VARIABLE}; on one machine alone insecure=true works without`,
      );
    const outside = addresses.find(({ host }) => !isLoopback(host));
    if (outside !== undefined)
      throw invalid(
        `insecure is allowed only on this machine, but ${addressText(outside)} is not certainly on it; use a key`,
      );
    return createHash("sha256").update("conclave raft without a key").digest();
  }
  return given;
}

const PARAMETERS = ["self", "dir", "key-file", "bind", "insecure"] as const;

/** `raft://n1@host:port,n2@host:port,n3@host:port?self=n1&dir=…&key-file=…` */
export function parseRaftUrl(url: string, scheme = "raft"): RaftOptions {
  const match = new RegExp(`^${scheme}://([^/?#]+)/?(?:\\?(.*))?$`, "i").exec(url);
  if (match === null)
    throw invalid(`write ${scheme}://n1@host:port,n2@host:port,n3@host:port?self=n1&dir=…&key-file=…`);
  const given = new URLSearchParams(match[2] ?? "");
  for (const name of given.keys())
    if (!(PARAMETERS as readonly string[]).includes(name))
      throw invalid(`"${name}" means nothing in a ${scheme} URL; it takes ${PARAMETERS.join(", ")}`);
  const insecure = given.get("insecure");
  if (insecure !== null && insecure !== "true" && insecure !== "false")
    throw invalid(`insecure is "${insecure}"; write insecure=true or leave it out`);
  const text = (name: (typeof PARAMETERS)[number]): string | undefined => given.get(name) ?? undefined;
  return {
    peers: decodeURIComponent(match[1]!)
      .split(",")
      .filter((peer) => peer !== ""),
    self: text("self"),
    dir: text("dir"),
    keyFile: text("key-file"),
    bind: text("bind"),
    insecure: insecure === "true",
  };
}
