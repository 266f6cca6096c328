/** Elections with no server: who leads by Raft and by Bully, what each peer knows, and the network between them. */
import { bind } from "./cards.js";
import { attr, byId, duration, el, shortToken, text } from "./dom.js";
import { renderMesh, tickMesh } from "./mesh.js";
import { renderLinks, renderNotes } from "./peers-links.js";
import { renderList } from "./peers-list.js";
import { leadersOf, TITLES, withoutMajority } from "./peers-view.js";

/**
 * @typedef {import("./peers-view.js").Peers} Peers
 * @typedef {import("./peers-view.js").Contest} Contest
 */

/** What the page starts with: with five, two can be cut off. */
const USUAL = "5";

const select = /** @type {HTMLSelectElement} */ (byId("size"));

/** @type {Peers | null} */
let shown = null;
/** @type {string | null} */
let barredBy = null;
let leaseMs = 0;

select.addEventListener("change", () => {
  if (shown) renderControls(shown, barredBy);
});

/**
 * @param {Peers} peers
 * @param {string | null} barred why no button works at all
 * @param {number} now
 * @param {number} ttlMs
 */
export function renderPeers(peers, barred, now, ttlMs) {
  shown = peers;
  leaseMs = ttlMs;
  barredBy = barred;
  renderControls(peers, barred);
  const any = peers.peers.length > 0;
  for (const id of ["contests", "peers-box", "links-box"]) byId(id).hidden = !any;
  for (const algorithm of /** @type {const} */ (["raft", "bully"])) {
    const contest = peers.contests.find((one) => one.algorithm === algorithm);
    byId(`contest-${algorithm}`).hidden = contest === undefined;
    if (contest && any) renderContest(peers, contest, now);
  }
  renderList(peers, barred, now);
  renderLinks(peers, barred);
  renderNotes(peers);
}

/** @param {number} now */
export function tickPeers(now) {
  if (shown === null || shown.peers.length === 0 || byId("peers").hidden) return;
  for (const contest of shown.contests) {
    renderVerdict(shown, contest, now);
    tickMesh(contest.algorithm, now, leaseMs);
  }
}

/**
 * @param {Peers} peers
 * @param {string | null} barred
 */
function renderControls({ phase, sizes, error, peers, links, contests }, barred) {
  if (select.options.length === 0) {
    select.append(
      ...sizes.map((size) => {
        const option = el("option", "", String(size));
        option.value = String(size);
        return option;
      }),
    );
    select.value = USUAL;
  }
  const busy = phase === "starting" || phase === "ending";
  const begin = peers.length === 0 ? "Start the peers" : "Start anew";
  const label = busy ? "Under way" : begin;
  const act = (/** @type {string} */ id, /** @type {string} */ words, /** @type {string} */ path) => ({
    id,
    label: words,
    path: `/peers/${path}`,
    refusal: null,
  });
  const off = phase === "running" ? null : "start the peers first";
  const buttonOf = (/** @type {string} */ id) => /** @type {HTMLButtonElement} */ (byId(id));
  const started = busy ? "the peers are being started or ended" : null;
  bind(buttonOf("begin"), act("begin", label, `begin/${select.value}`), label, barred ?? started);
  const split = "Cut the network in two";
  bind(buttonOf("split"), act("split", split, "split"), split, barred ?? off);
  const cut = links.some((link) => link.cut);
  const mend = "Heal all links";
  bind(buttonOf("mend"), act("mend", mend, "mend"), mend, barred ?? off ?? (cut ? null : "no link is cut"));
  const both = contests.map(({ algorithm }) => TITLES[algorithm]).join(" and ");
  attr(byId("peers-outcome"), "data-bad", phase === "failed" ? "" : null);
  if (phase === "failed")
    text(byId("peers-outcome"), `It could not be shown: ${error ?? "no reason is known"}`);
  else if (busy) text(byId("peers-outcome"), "The peers are being started.");
  else text(byId("peers-outcome"), phase === "idle" ? `Not started. They elect by ${both}.` : "");
}

/**
 * @param {Peers} peers
 * @param {Contest} contest
 * @param {number} now
 */
function renderContest(peers, contest, now) {
  const { algorithm, twoMs, changes } = contest;
  renderMesh(algorithm, peers, leadersOf(contest, now));
  renderVerdict(peers, contest, now);
  text(byId(`${algorithm}-changes`), String(changes));
  text(byId(`${algorithm}-two`), twoMs === 0 ? "never" : duration(twoMs));
  attr(byId(`${algorithm}-two`), "data-bad", twoMs > 0 ? "" : null);
}

/**
 * @param {Peers} peers
 * @param {Contest} contest
 * @param {number} now
 */
function renderVerdict(peers, contest, now) {
  const { algorithm, terms } = contest;
  const leaders = leadersOf(contest, now);
  const two = leaders.length > 1;
  attr(byId(`contest-${algorithm}`), "data-bad", two ? "" : null);
  text(byId(`${algorithm}-leaders`), String(leaders.length));
  attr(byId(`${algorithm}-leaders`), "data-bad", two ? "" : null);
  const verdict = byId(`${algorithm}-verdict`);
  if (two) return text(verdict, `Two leaders at once: ${leaders.join(" and ")}`);
  const [leader] = leaders;
  const alone = algorithm === "raft" ? withoutMajority(peers) : [];
  const minority = alone.length === 0 ? "" : `. No majority, so no leader: ${alone.join(", ")}`;
  if (leader === undefined)
    return text(verdict, minority === "" ? "Nobody leads." : `Nobody leads${minority}.`);
  const term = terms.findLast(({ node }) => node === leader);
  const number = algorithm === "raft" ? "term" : "number";
  text(verdict, `${leader} leads, ${number} ${shortToken(term?.token ?? "")}${minority}.`);
}
