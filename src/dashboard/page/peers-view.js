/** What is known of the peers, and what follows from it. */
import { hueOf } from "./view.js";

/**
 * @typedef {"raft" | "bully"} Algorithm
 *
 * @typedef {object} Ballot
 * @property {string} term
 * @property {string | null} vote
 * @property {string | null} leader
 * @property {{ to: string, until: number } | null} promised
 * @property {string | null} unfit
 *
 * @typedef {{ token: string | null, deadline: number | null, follows: string | null, ballot: Ballot | null }} PeerRole
 *
 * @typedef {object} Peer
 * @property {string} name
 * @property {"starting" | "up" | "frozen" | "dead"} state
 * @property {number | null} pid
 * @property {Partial<Record<Algorithm, PeerRole>>} roles
 *
 * @typedef {{ from: string, to: string, cut: boolean, sent: number }} Link
 * @typedef {{ node: string, token: string, from: number, to?: number, deadline?: number }} Term
 * @typedef {{ algorithm: Algorithm, terms: Term[], twoMs: number, changes: number }} Contest
 * @typedef {{ id: number, at: number, node: string | null, algorithm: Algorithm | null, text: string, weight: string }} Note
 *
 * @typedef {object} Peers
 * @property {"idle" | "starting" | "running" | "ending" | "failed"} phase
 * @property {number[]} sizes
 * @property {Contest[]} contests
 * @property {Peer[]} peers
 * @property {Link[]} links
 * @property {Note[]} notes newest last
 * @property {string | null} error
 */

/** @type {Readonly<Record<Algorithm, string>>} */
export const TITLES = { raft: "Raft", bully: "Bully" };

/** @param {string} name */
export function hueOfPeer(name) {
  return hueOf(Number(/\d+$/.exec(name)?.[0] ?? 1) - 1);
}

/**
 * Who may act now.
 * @param {Contest} contest
 * @param {number} now
 */
export function leadersOf({ terms }, now) {
  const leading = terms.filter(({ to, deadline }) => to === undefined && (deadline ?? now + 1) > now);
  return [...new Set(leading.map(({ node }) => node))];
}

/**
 * Peers that are up and in touch with too few to elect anybody.
 * @param {Peers} peers
 */
export function withoutMajority({ peers, links }) {
  const cuts = new Set(links.filter(({ cut }) => cut).map(({ from, to }) => `${from} ${to}`));
  const up = peers.filter(({ state }) => state === "up").map(({ name }) => name);
  return up.filter((name) => {
    const reached = up.filter((other) => !cuts.has(`${name} ${other}`) && !cuts.has(`${other} ${name}`));
    return reached.length <= peers.length / 2;
  });
}
