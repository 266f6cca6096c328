/** A card for each candidate (or election), with what can be done to it. */
import { attr, byId, duration, el, icon, keyed, setHue, shortToken, text } from "./dom.js";

/**
 * @typedef {object} Parts
 * @property {HTMLElement} name
 * @property {ReturnType<typeof icon>} icon
 * @property {HTMLElement} state
 * @property {HTMLElement} lease
 * @property {HTMLElement} fill
 * @property {HTMLElement} meta
 * @property {HTMLElement} standing
 * @property {HTMLElement} actions
 * @property {Map<string, HTMLButtonElement>} buttons
 * @property {import("./view.js").Lease | null} running
 */

const list = byId("cards");
/** @type {Map<string, HTMLLIElement>} */
const cards = new Map();
/** @type {WeakMap<HTMLElement, Parts>} */
const parts = new WeakMap();
/** @type {WeakMap<HTMLElement, import("./view.js").Action>} */
const actions = new WeakMap();

/** @type {Readonly<Record<import("./view.js").State, string>>} */
const ICONS = {
  leader: "crown",
  jeopardy: "jeopardy",
  frozen: "frozen",
  follower: "follower",
  starting: "starting",
  gone: "gone",
  vacant: "follower",
  unknown: "starting",
};

/**
 * One listener for all buttons.
 * @param {(action: import("./view.js").Action) => void} perform
 */
export function onAction(perform) {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    const action = button ? actions.get(button) : undefined;
    if (button && action && button.getAttribute("aria-disabled") !== "true") perform(action);
  });
}

/**
 * @param {HTMLButtonElement} button
 * @param {import("./view.js").Action} action
 * @param {string} name what a screen reader says
 * @param {string | null} refusal
 */
export function bind(button, action, name, refusal) {
  actions.set(button, action);
  text(button, action.label);
  attr(button, "aria-label", name);
  // Not `disabled`: a button that has the focus must keep it when its time is over.
  attr(button, "aria-disabled", refusal === null ? null : "true");
  attr(button, "title", refusal);
}

/**
 * @param {import("./view.js").View} view
 * @param {string | null} barred why no button works at all
 */
export function renderCards(view, barred) {
  text(byId("cards-title"), view.noun);
  text(byId("cards-count"), view.count);
  keyed(
    list,
    cards,
    view.rows,
    ({ id }) => id,
    create,
    (card, row) => update(card, row, barred),
  );
  const add = /** @type {HTMLButtonElement} */ (byId("add"));
  add.hidden = view.add === null;
  if (view.add) bind(add, view.add, view.add.label, barred ?? view.add.refusal);
}

/** @param {number} now */
export function tickCards(now) {
  for (const card of cards.values()) {
    const { running, fill, lease } = partsOf(card);
    if (running === null) continue;
    const left = Math.max(0, Math.min(1, (running.deadline - now) / running.span));
    fill.style.transform = `scaleX(${left.toFixed(4)})`;
    attr(lease, "aria-valuenow", String(Math.round(left * 100)));
  }
}

/** @param {HTMLElement} card */
function partsOf(card) {
  return /** @type {Parts} */ (parts.get(card));
}

/** @param {import("./view.js").Row} row */
function create(row) {
  const name = el("h3", "card-name", row.id);
  name.id = `card-${row.id}`;
  const state = el("p", "card-state");
  const fill = el("i");
  const lease = el("div", "lease", fill);
  attr(lease, "role", "meter");
  attr(lease, "aria-label", `lease of ${row.id} left, in percent`);
  const meta = el("p", "card-meta");
  const standing = el("p", "card-standing");
  const buttons = el("div", "card-actions");
  attr(buttons, "role", "group");
  attr(buttons, "aria-label", `actions on ${row.id}`);
  const sign = icon("card-icon");
  const card = el(
    "li",
    "card",
    el("div", "card-head", el("span", "card-dot"), name, sign),
    state,
    lease,
    meta,
    standing,
    buttons,
  );
  setHue(card, row.hue);
  parts.set(card, {
    name,
    icon: sign,
    state,
    lease,
    fill,
    meta,
    standing,
    actions: buttons,
    buttons: new Map(),
    running: null,
  });
  return card;
}

/**
 * @param {HTMLElement} card
 * @param {import("./view.js").Row} row
 * @param {string | null} barred
 */
function update(card, row, barred) {
  const own = partsOf(card);
  attr(card, "data-state", row.state);
  attr(card, "data-cut", row.cut ? "" : null);
  own.icon.show(row.cut && row.state === "follower" ? "cut" : ICONS[row.state]);
  text(own.state, row.token === null ? row.text : `${row.text}, token ${shortToken(row.token)}`);
  attr(own.state, "title", row.token === null ? null : `token ${row.token}`);
  if (row.lease === null && own.running !== null) own.fill.style.transform = "scaleX(0)";
  own.running = row.lease;
  attr(own.lease, "aria-valuetext", row.lease === null ? "none" : `of ${duration(row.lease.span)}`);
  text(own.meta, row.meta.join(" · "));
  text(own.standing, row.standing ?? "");
  keyed(
    own.actions,
    own.buttons,
    row.actions,
    ({ id }) => id,
    () => {
      const button = el("button");
      button.type = "button";
      return button;
    },
    (button, action) => bind(button, action, `${action.label} ${row.id}`, barred ?? action.refusal),
  );
}
