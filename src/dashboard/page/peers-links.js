/** The network, a button for every ordered pair; and what happened. */
import { bind } from "./cards.js";
import { attr, byId, el, keyed, setHue } from "./dom.js";
import { hueOfPeer, TITLES } from "./peers-view.js";

/** @typedef {import("./peers-view.js").Peers} Peers */

/** @type {Map<string, HTMLTableRowElement>} */
const rows = new Map();
/** @type {Map<string, HTMLButtonElement>} */
const toggles = new Map();

/**
 * A button for every ordered pair.
 * @param {Peers} all
 * @param {string | null} barred
 */
export function renderLinks({ peers, links, phase }, barred) {
  const names = peers.map(({ name }) => name);
  const head = byId("links-head");
  const key = names.join();
  if (head.dataset["of"] !== key) {
    head.dataset["of"] = key;
    rows.clear();
    toggles.clear();
    byId("links-rows").replaceChildren();
    head.replaceChildren(
      el("th", "", el("span", "quiet", "from")),
      ...names.map((name) => headOf(name, "col")),
    );
  }
  keyed(
    byId("links-rows"),
    rows,
    names,
    (name) => name,
    (from) => {
      const row = el("tr", "", headOf(from, "row"));
      for (const to of names) {
        if (from === to) {
          row.append(el("td", "self"));
          continue;
        }
        const button = el("button");
        button.type = "button";
        toggles.set(`${from} ${to}`, button);
        row.append(el("td", "", button));
      }
      return row;
    },
    () => {},
  );
  for (const { from, to, cut } of links) {
    const button = toggles.get(`${from} ${to}`);
    if (button === undefined) continue;
    const path = `/peers/${from}/${to}/${cut ? "heal" : "cut"}`;
    const label = `${cut ? "Heal" : "Cut"} the link from ${from} to ${to}`;
    bind(
      button,
      { id: "link", label: cut ? "cut" : "on", path, refusal: null },
      label,
      barred ?? (phase === "running" ? null : "start the peers first"),
    );
    attr(button, "aria-pressed", String(cut));
  }
}

/**
 * @param {string} name
 * @param {"row" | "col"} scope
 */
function headOf(name, scope) {
  const head = el("th", "", name);
  attr(head, "scope", scope);
  return head;
}

/** @type {Map<string, HTMLTableRowElement>} */
const notes = new Map();

/** @param {Peers} all */
export function renderNotes(all) {
  const both = all.contests.length > 1;
  keyed(
    byId("notes"),
    notes,
    all.notes.toReversed(),
    ({ id, at }) => `${id}/${at}`,
    ({ at, node, algorithm, text: words, weight }) => {
      const who = node === null ? el("td", "caller", "all") : el("td", "caller", el("i", "card-dot"), node);
      if (node !== null) setHue(who, hueOfPeer(node));
      const prefix = both && algorithm !== null ? `${TITLES[algorithm]}: ` : "";
      const when = el("td", "when", new Date(at).toTimeString().slice(0, 8));
      const row = el("tr", "", when, who, el("td", "", `${prefix}${words}`));
      attr(row, "data-weight", weight);
      return row;
    },
    () => {},
  );
}
