/** What can be said about peers, in code or by a URL, and what of it is refused. */
import { createHash } from "node:crypto";
import { invalid } from "../../kit/errors.js";
import type { Clock } from "../../seam/clock.js";
import type { Address, Peer } from "../raft/address.js";
import { addressText, isLoopback, listText, parseAddress, parsePeer } from "../raft/address.js";
import { sharedKey, SHORTEST_KEY } from "../raft/key.js";

/** How a process takes part in Bully elections. */
export interface BullyOptions {
  /** All peers, the same list in every process: `["n1@10.0.0.1:7500", …]`. Numbers in names count: n10 is higher than n9. */
  readonly peers: readonly string[];
  /** Which of them this process is. Left out: it can only observe. */
  readonly self?: string | undefined;
  /** Must be `true` (without `quorum`): Bully has no quorum, and in a partition each side has a leader. */
  readonly unsafe?: boolean | undefined;
  /** The Raft backend, with the highest peer preferred when nobody leads: never two leaders. Needs `dir`, and an odd number of peers. */
  readonly quorum?: boolean | undefined;
  /** Directory of this voter's journal. Only with `quorum`. */
  readonly dir?: string | undefined;
  /** `false`: a higher peer that comes back waits until nobody leads. Default `true`: it takes over. */
  readonly preempt?: boolean | undefined;
  /** The key that all share, at least 32 bytes. A frame without it is not looked at. Nothing is encrypted. */
  readonly key?: string | Uint8Array | undefined;
  /** A file with the key, instead of `key`. */
  readonly keyFile?: string | undefined;
  /** Where this peer listens, if not at its address in the list: `"0.0.0.0:7500"`. */
  readonly bind?: string | undefined;
  /** Where this process reaches a peer, if not at its address in the list. */
  readonly dial?: Readonly<Record<string, string>> | undefined;
  /** Works without a key, and only if every address is one of this machine. */
  readonly insecure?: boolean | undefined;
  /** Told of every ELECTION, ANSWER and COORDINATOR, in plain lines. */
  readonly log?: ((line: string) => void) | undefined;
  readonly clock?: Clock | undefined;
}

/** Checked. Peers are in order, the lowest first. */
export interface BullyConfig {
  readonly peers: readonly Peer[];
  readonly cluster: string;
  readonly list: string;
  readonly self?: Peer | undefined;
  readonly bind?: Address | undefined;
  readonly dial: Readonly<Record<string, Address>>;
  readonly secret: Buffer;
  readonly preempt: boolean;
}

const KEY_VARIABLE = "CONCLAVE_BULLY_KEY";
const MOST_PEERS = 50;

export function checkOptions(options: BullyOptions, env: NodeJS.ProcessEnv = process.env): BullyConfig {
  if (options.unsafe !== true)
    throw invalid(
      "Bully has no quorum: in a partition each side has a leader; set unsafe: true (in a URL: ?unsafe=true) to accept that, or use quorum: true",
    );
  if (options.dir !== undefined)
    throw invalid("Bully keeps nothing on disk; leave dir out, or use quorum: true");
  const peers = ranked(options.peers);
  const names = peers.map(({ name }) => name).join(", ");
  const self = peers.find(({ name }) => name === options.self);
  if (options.self !== undefined && self === undefined)
    throw invalid(`self is "${options.self}", which is not in the list; it must be one of ${names}`);
  for (const name of Object.keys(options.dial ?? {}))
    if (!peers.some((peer) => peer.name === name))
      throw invalid(`dial names "${name}", which is not in the list: ${names}`);
  const bind = options.bind === undefined ? self : parseAddress(options.bind);
  const dial = Object.fromEntries(
    Object.entries(options.dial ?? {}).map(([name, text]) => [name, parseAddress(text)]),
  );
  const list = listText(peers);
  return {
    peers,
    list,
    cluster: createHash("sha256").update(`conclave bully 1\n${list}`).digest("hex").slice(0, 32),
    self,
    bind,
    dial,
    secret: secretOf(options, [...peers, ...Object.values(dial), ...(bind ? [bind] : [])], env),
    preempt: options.preempt ?? true,
  };
}

/** Checked and in order, the lowest first. Runs of digits are compared as numbers. */
export function ranked(texts: readonly string[]): readonly Peer[] {
  const peers = texts.map(parsePeer);
  if (peers.length === 0 || peers.length > MOST_PEERS)
    throw invalid(`the list names ${peers.length} peers; write one to ${MOST_PEERS}`);
  const sorted = peers.toSorted((a, b) => compare(a.name, b.name));
  if (sorted.some((peer, index) => index > 0 && compare(sorted[index - 1]!.name, peer.name) === 0))
    throw invalid("two peers in the list have the same id; each needs its own");
  if (new Set(peers.map(addressText)).size < peers.length)
    throw invalid("two peers in the list have the same address; each needs its own");
  return sorted;
}

function compare(a: string, b: string): number {
  const [as, bs] = [a, b].map((name) => name.split(/([0-9]+)/));
  for (let i = 0; i < Math.max(as!.length, bs!.length); i++) {
    const [x = "", y = ""] = [as![i], bs![i]];
    if (i % 2 === 1 && x !== "" && y !== "") {
      const difference = BigInt(x) - BigInt(y);
      if (difference !== 0n) return difference > 0n ? 1 : -1;
    } else if (x !== y) return x > y ? 1 : -1;
  }
  return 0;
}

function secretOf(options: BullyOptions, addresses: readonly Address[], env: NodeJS.ProcessEnv): Buffer {
  const { key, keyFile } = options;
  const given = sharedKey({ key, keyFile, variable: env[KEY_VARIABLE] });
  if (given !== undefined) return given;
  const outside = addresses.find(({ host }) => !isLoopback(host));
  if (options.insecure !== true || outside !== undefined)
    throw invalid(
      `peers need a shared key: pass key-file=… (at least ${SHORTEST_KEY} bytes, for example from: openssl rand -hex 32), or set ${KEY_VARIABLE}; insecure=true works without, if all addresses are of this machine`,
    );
  return createHash("sha256").update("conclave bully without a key").digest();
}

const TEXTS = ["self", "key-file", "bind", "dir"] as const;
const FLAGS = ["unsafe", "quorum", "preempt", "insecure"] as const;

/** `bully://n1@host:port,n2@host:port?self=n1&unsafe=true&key-file=…` */
export function parseBullyUrl(url: string): BullyOptions {
  const match = /^bully:\/\/([^/?#]+)\/?(?:\?(.*))?$/i.exec(url);
  if (match === null)
    throw invalid("write bully://n1@host:port,n2@host:port,n3@host:port?self=n1&unsafe=true&key-file=…");
  const given = new URLSearchParams(match[2] ?? "");
  const known: readonly string[] = [...TEXTS, ...FLAGS];
  for (const name of given.keys())
    if (!known.includes(name))
      throw invalid(`"${name}" means nothing in a bully URL; it takes ${known.join(", ")}`);
  const text = (name: (typeof TEXTS)[number]): string | undefined => given.get(name) ?? undefined;
  const flag = (name: (typeof FLAGS)[number]): boolean | undefined => {
    const value = given.get(name);
    if (value !== null && value !== "true" && value !== "false")
      throw invalid(`${name} is "${value}"; write ${name}=true or ${name}=false`);
    return value === null ? undefined : value === "true";
  };
  return {
    peers: decodeURIComponent(match[1]!)
      .split(",")
      .filter((peer) => peer !== ""),
    self: text("self"),
    keyFile: text("key-file"),
    bind: text("bind"),
    dir: text("dir"),
    unsafe: flag("unsafe"),
    quorum: flag("quorum"),
    preempt: flag("preempt"),
    insecure: flag("insecure"),
  };
}
