/** The parts of the demo's page, one shown at a time. Which one is kept in the address, behind the token. */
import { attr, byId } from "./dom.js";

const NAMES = ["election", "dialer", "peers"];
/** Those that there is something to show in. */
let shown = NAMES;
const KEY = "view";

/** @param {string} name */
const tabOf = (name) => byId(`tab-${name}`);

let opened = false;

/**
 * There is more to show than an election, or something else.
 * @param {readonly string[]} names
 */
export function openTabs(names) {
  if (opened) return;
  opened = true;
  shown = NAMES.filter((name) => names.includes(name));
  const list = byId("tabs");
  list.hidden = shown.length < 2;
  for (const name of NAMES) tabOf(name).hidden = !shown.includes(name);
  for (const name of shown) {
    attr(byId(name), "role", "tabpanel");
    attr(byId(name), "aria-labelledby", `tab-${name}`);
    tabOf(name).addEventListener("click", () => show(name, true));
  }
  list.addEventListener("keydown", move);
  show(params().get(KEY) ?? "", false);
}

/**
 * @param {string} wanted
 * @param {boolean} remember
 */
function show(wanted, remember) {
  const name = shown.includes(wanted) ? wanted : (shown[0] ?? "election");
  for (const other of NAMES) {
    const chosen = other === name;
    byId(other).hidden = !chosen;
    attr(tabOf(other), "aria-selected", String(chosen));
    // One stop of the tab key for all of them; the arrows go from one to the next.
    attr(tabOf(other), "tabindex", chosen ? null : "-1");
  }
  if (!remember) return;
  const hash = params();
  hash.set(KEY, name);
  history.replaceState(null, "", `#${hash}`);
}

/** @param {KeyboardEvent} event */
function move(event) {
  const here = shown.findIndex((name) => tabOf(name) === event.target);
  const there = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: -1 }[event.key];
  if (here < 0 || there === undefined) return;
  event.preventDefault();
  const name = shown.at(there % shown.length) ?? "";
  show(name, true);
  tabOf(name).focus();
}

function params() {
  return new URLSearchParams(location.hash.slice(1));
}
