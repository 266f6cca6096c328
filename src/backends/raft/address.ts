/** The list of voters, and where they are. */
import { createHash } from "node:crypto";
import { isIP } from "node:net";
import { invalid } from "../../kit/errors.js";

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A voter in the list. */
export interface Peer extends Address {
  readonly name: string;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const MOST_VOTERS = 9;

/** `n1@10.0.0.1:7400` */
export function parsePeer(text: string): Peer {
  const at = text.indexOf("@");
  const name = text.slice(0, at);
  if (at < 1 || !NAME.test(name))
    throw invalid(
      `"${text}" is no voter; write name@host:port, the name of letters, digits, ".", "_" and "-"`,
    );
  return { name, ...parseAddress(text.slice(at + 1)) };
}

export function parseAddress(text: string): Address {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:[\]/@]+):([0-9]{1,5})$/.exec(text);
  const port = Number(match?.[2]);
  if (match === null || port < 1 || port > 65_535)
    throw invalid(`"${text}" is no address; write host:port, for example 10.0.0.1:7400`);
  return { host: match[1]!.replace(/^\[|\]$/g, ""), port };
}

/** Checks the whole list: all peers must have the same one, and a majority of it must be meaningful. */
export function checkPeers(peers: readonly Peer[]): readonly Peer[] {
  const names = new Set(peers.map(({ name }) => name));
  const places = new Set(peers.map(addressText));
  if (names.size < peers.length)
    throw invalid("two voters in the list have the same name; each needs its own");
  if (places.size < peers.length)
    throw invalid("two voters in the list have the same address; each needs its own");
  if (peers.length % 2 === 0 || peers.length > MOST_VOTERS)
    throw invalid(
      `the list names ${peers.length} voters; use three or five (an odd number, at most ${MOST_VOTERS}): with an even number one more failure stops the election, not one less`,
    );
  return peers.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

export function addressText({ host, port }: Address): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** The list as all print it, whatever the order it was written in. */
export function listText(peers: readonly Peer[]): string {
  return peers.map((peer) => `${peer.name}@${addressText(peer)}`).join(",");
}

export function clusterId(peers: readonly Peer[]): string {
  return createHash("sha256")
    .update(`conclave raft 1\n${listText(peers)}`)
    .digest("hex")
    .slice(0, 32);
}

/** Certainly this machine. Other names may be, and count as not. */
export function isLoopback(host: string): boolean {
  if (isIP(host) === 4) return host.startsWith("127.");
  return host === "::1" || host === "localhost";
}
