/** The resource that checks tokens: what it took, and what it refused. */
import { attr, byId, el, icon, keyed, setHue, shortToken, showToken, text } from "./dom.js";

const MOST_RUNS = 5;
const MOST_PIPS = 12;

/** @typedef {{ id: string, write: import("./view.js").Write, count: number }} Run writes in a row by one token, all taken or all refused */

/** @type {Map<string, HTMLLIElement>} */
const writes = new Map();
/** @type {Map<string, HTMLLIElement>} */
const refusals = new Map();

/** @param {import("./view.js").Storage | null} storage */
export function renderStorage(storage) {
  byId("storage").hidden = storage === null;
  if (storage === null) return;
  showToken(byId("storage-highest"), storage.highest);
  text(byId("storage-accepted"), String(storage.accepted));
  const refused = byId("storage-refused");
  text(refused, String(storage.refused));
  attr(refused, "data-none", storage.refused === 0 ? "" : null);
  keyed(
    byId("writes"),
    writes,
    runsOf(storage.writes).slice(0, MOST_RUNS),
    ({ id }) => id,
    runElement,
    updateRun,
  );
  keyed(
    byId("refusals"),
    refusals,
    storage.refusals,
    ({ id }) => id,
    callout,
    () => {},
  );
  byId("storage-hint").hidden = storage.refusals.length > 0;
}

/**
 * @param {readonly import("./view.js").Write[]} list newest first
 * @returns {Run[]} newest first
 */
function runsOf(list) {
  /** @type {Run[]} */
  const runs = [];
  for (const write of list.toReversed()) {
    const last = runs[0];
    if (last && last.write.token === write.token && last.write.accepted === write.accepted) last.count++;
    // Named by what came before it, so that it keeps its element while its oldest writes are forgotten.
    else
      runs.unshift({
        id: `${last?.id ?? ""} ${write.token}${write.accepted ? "" : "!"}`.slice(-200),
        write,
        count: 1,
      });
  }
  return runs;
}

/** @param {Run} run */
function runElement({ write: { node, hue, token, accepted } }) {
  const made = el(
    "li",
    "run",
    el("span", "run-node", node),
    el("span", "token", shortToken(token)),
    el("span", "pips"),
    el("span", "run-count"),
  );
  setHue(made, hue);
  if (!accepted) attr(made, "data-refused", "");
  attr(made, "title", `${node}, token ${token}: ${accepted ? "accepted" : "refused"}`);
  return made;
}

/**
 * @param {HTMLElement} element
 * @param {Run} run
 */
function updateRun(element, { count, write }) {
  const [, , pips, words] = element.children;
  if (!pips || !words) return;
  while (pips.childElementCount < Math.min(count, MOST_PIPS)) pips.append(el("i"));
  while (pips.childElementCount > Math.min(count, MOST_PIPS)) pips.lastElementChild?.remove();
  text(words, write.accepted ? `${count} accepted` : `${count} refused`);
}

/** @param {import("./view.js").Write} write */
function callout({ node, token, highest }) {
  const sign = icon("");
  sign.show("refused");
  return el(
    "li",
    "refusal",
    sign,
    el(
      "span",
      "",
      `Refused: ${node} came with token `,
      el("span", "token", shortToken(token)),
      " after ",
      el("span", "token", shortToken(highest)),
      " was seen.",
    ),
  );
}
