/** A card for each peer: what it takes for true, what is on its disk, and what can be done to it. */
import { bind } from "./cards.js";
import { attr, byId, el, icon, keyed, setHue, shortToken, text } from "./dom.js";
import { hueOfPeer, leadersOf, TITLES } from "./peers-view.js";

/**
 * @typedef {import("./peers-view.js").Peers} Peers
 * @typedef {import("./peers-view.js").Peer} Peer
 * @typedef {import("./peers-view.js").Algorithm} Algorithm
 * @typedef {import("./peers-view.js").Ballot} Ballot
 */

const ICONS = { starting: "starting", up: "follower", frozen: "frozen", dead: "gone" };
const STATES = { starting: "starting", up: "up", frozen: "frozen", dead: "dead" };

/** @type {Map<string, HTMLLIElement>} */
const cards = new Map();
/** @type {WeakMap<HTMLElement, { sign: ReturnType<typeof icon>, state: HTMLElement, facts: HTMLElement, actions: HTMLElement, buttons: Map<string, HTMLButtonElement> }>} */
const parts = new WeakMap();

/**
 * @param {Peers} all
 * @param {string | null} barred
 * @param {number} now
 */
export function renderList({ peers, contests, phase }, barred, now) {
  const leads = new Map(contests.map((contest) => [contest.algorithm, leadersOf(contest, now)]));
  text(byId("peers-count"), `${peers.length}; a majority is ${Math.floor(peers.length / 2) + 1}`);
  keyed(
    byId("peers-list"),
    cards,
    peers,
    ({ name }) => name,
    createCard,
    (card, peer) => {
      const own = parts.get(card);
      if (own === undefined) return;
      const leading = contests.filter(({ algorithm }) => leads.get(algorithm)?.includes(peer.name));
      const crowned = peer.state === "up" && leading.length > 0;
      attr(card, "data-state", crowned ? "leader" : stateOfCard(peer.state));
      own.sign.show(crowned ? "crown" : ICONS[peer.state]);
      text(own.state, peer.pid === null ? STATES[peer.state] : `${STATES[peer.state]}, process ${peer.pid}`);
      const lines = contests.map(({ algorithm }) => {
        const isLeader = leads.get(algorithm)?.includes(peer.name) ?? false;
        return [TITLES[algorithm], wording(algorithm, peer, isLeader)];
      });
      const ballot = peer.roles.raft?.ballot;
      if (ballot && peer.state !== "dead") lines.push(["Its disk", diskOf(ballot)]);
      renderLines(own.facts, lines);
      keyed(
        own.actions,
        own.buttons,
        actionsOf(peer),
        ({ id }) => id,
        () => {
          const made = el("button");
          made.type = "button";
          return made;
        },
        (button, action) =>
          bind(
            button,
            action,
            `${action.label} ${peer.name}`,
            barred ?? (phase === "running" ? action.refusal : "the peers are being started or ended"),
          ),
      );
    },
  );
}

/** @param {Peer} peer */
function createCard({ name }) {
  const title = el("h3", "card-name", name);
  const sign = icon("card-icon");
  const state = el("p", "card-state");
  const facts = el("dl", "peer-facts");
  const actions = el("div", "card-actions");
  attr(actions, "role", "group");
  attr(actions, "aria-label", `actions on ${name}`);
  const head = el("div", "card-head", el("span", "card-dot"), title, sign);
  const card = el("li", "card peer", head, state, facts, actions);
  setHue(card, hueOfPeer(name));
  parts.set(card, { sign, state, facts, actions, buttons: new Map() });
  return card;
}

/** @param {Peer["state"]} state */
function stateOfCard(state) {
  return { starting: "starting", up: "follower", frozen: "frozen", dead: "gone" }[state];
}

/**
 * @param {Algorithm} algorithm
 * @param {Peer} peer
 * @param {boolean} isLeader
 */
function wording(algorithm, { name, state, roles }, isLeader) {
  if (state === "dead") return "–";
  const role = roles[algorithm];
  if (isLeader)
    return `leads, ${algorithm === "raft" ? "term" : "number"}\u00a0${shortToken(role?.token ?? "")}`;
  if (role?.ballot?.unfit) return "takes no part yet";
  const follows = role?.follows;
  return follows && follows !== name ? `follows ${follows}` : "campaigns";
}

/** @param {Ballot} ballot */
function diskOf({ term, vote, leader, unfit }) {
  if (unfit !== null && term === "0") return "empty: waits for all the others";
  if (term === "0") return "empty";
  const what = leader === null ? (vote === null ? "no vote" : `voted for ${vote}`) : `acknowledged ${leader}`;
  return `term\u00a0${shortToken(term)}, ${what}`;
}

/**
 * @param {HTMLElement} list
 * @param {readonly string[][]} lines
 */
function renderLines(list, lines) {
  const key = lines.flat().join("\n");
  if (list.dataset["of"] === key) return;
  list.dataset["of"] = key;
  list.replaceChildren(
    ...lines.map(([what = "", value = ""]) => el("div", "", el("dt", "", what), el("dd", "", value))),
  );
}

/**
 * @param {Peer} peer
 * @returns {import("./view.js").Action[]}
 */
function actionsOf({ name, state }) {
  const act = (
    /** @type {string} */ id,
    /** @type {string} */ label,
    /** @type {string | null} */ refusal,
  ) => ({
    id: label,
    label,
    path: `/peers/${encodeURIComponent(name)}/${id}`,
    refusal,
  });
  const dead = state === "dead" ? `${name} is dead: start it first` : null;
  return [
    state === "dead" ? act("start", "Start", null) : act("kill", "Kill", null),
    state === "frozen" ? act("thaw", "Thaw", null) : act("freeze", "Freeze", dead),
    act("wipe", "Wipe disk", null),
  ];
}
