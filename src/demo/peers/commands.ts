/** What may be done to peers and to the links between them, and when that makes sense. */
import { preciseNow } from "../../terminal/lines.js";
import type { CommandResult } from "../commands.js";
import type { Contest, PeersState, PeerView } from "./model.js";
import { isSize, leadersOf } from "./model.js";
import type { Peers } from "./peers.js";

interface Action {
  /** Why not now; `undefined`: it can be done. */
  readonly refusal: (peer: PeerView) => string | undefined;
  readonly run: (peers: Peers, name: string) => void;
}

const alive = ({ name, state }: PeerView): string | undefined =>
  state === "dead" ? `${name} is dead: start it first` : undefined;

const ACTIONS: Readonly<Record<string, Action>> = {
  kill: { refusal: alive, run: (peers, name) => peers.kill(name) },
  start: {
    refusal: ({ name, state }) => (state === "dead" ? undefined : `${name} is running`),
    run: (peers, name) => peers.start(name),
  },
  freeze: {
    refusal: (peer) => (peer.state === "frozen" ? `${peer.name} is frozen: thaw it first` : alive(peer)),
    run: (peers, name) => peers.freeze(name),
  },
  thaw: {
    refusal: ({ name, state }) => (state === "frozen" ? undefined : `${name} is not frozen`),
    run: (peers, name) => peers.thaw(name),
  },
  wipe: { refusal: () => undefined, run: (peers, name) => peers.wipe(name) },
};

const DONE: CommandResult = { done: true };

function conflict(reason: string): CommandResult {
  return { done: false, status: 409, reason };
}

function missing(reason: string): CommandResult {
  return { done: false, status: 404, reason };
}

/** The parts of a path below `/peers/`. */
export function commandPeers(
  peers: Peers,
  [what = "", second = "", third = "", ...rest]: string[],
): CommandResult {
  if (rest.length > 0 || what === "") return missing("no such action");
  const { state } = peers;
  if (what === "begin") return third === "" ? begin(peers, Number(second)) : missing("no such action");
  if (state.phase !== "running") return conflict("the peers are not running: start them first");
  if (what === "split" && second === "") {
    peers.split(fewOf(state));
    return DONE;
  }
  if (what === "mend" && second === "") {
    peers.mend();
    return DONE;
  }
  const peer = state.peers.find(({ name }) => name === what);
  if (peer === undefined) return missing("no such peer");
  if (third !== "") return link(peers, what, second, third);
  const action = Object.hasOwn(ACTIONS, second) ? ACTIONS[second] : undefined;
  if (action === undefined) return missing("no such action");
  const reason = action.refusal(peer);
  if (reason !== undefined) return conflict(reason);
  action.run(peers, what);
  return DONE;
}

function begin(peers: Peers, count: number): CommandResult {
  if (!isSize(count)) return missing("no such number of peers");
  if (peers.busy) return conflict("the peers are being started or ended");
  // What goes wrong is in the state, which the page shows.
  void peers.begin(count).catch(() => {});
  return DONE;
}

function link(peers: Peers, from: string, to: string, action: string): CommandResult {
  const view = peers.state.links.find((one) => one.from === from && one.to === to);
  if (view === undefined) return missing("no such link");
  if (action !== "cut" && action !== "heal") return missing("no such action");
  if (view.cut === (action === "cut")) return conflict(view.cut ? "it is cut already" : "it is whole");
  peers.cut(from, to, action === "cut");
  return DONE;
}

/** Those that are cut off where the network is cut in two: a minority, with the present leaders as far as they fit. */
export function fewOf({ peers, contests }: Pick<PeersState, "peers" | "contests">): string[] {
  const size = Math.floor((peers.length - 1) / 2);
  const leaders = contests.toReversed().flatMap(({ terms }: Contest) => leadersOf(terms, preciseNow()));
  const names = peers.map(({ name }) => name).reverse();
  return [...new Set([...leaders, ...names])].slice(0, size).sort();
}
