/**
 * Every term as a bar. Bars stand still in a world that moves to the left: a
 * frame costs one transform, and the width of what is still growing.
 */
import { attr, byId, duration, el, keyed, setHue, text } from "./dom.js";
import { WINDOW_MS } from "./view.js";

const box = byId("timeline");
const track = byId("track");
const world = byId("world");
const grid = byId("grid");
const TICKS = 6;
const DENSE_FROM = 9;
/** Narrower, and labels of gaps would stand on each other. */
const LABEL_PX = 52;
const LETTER_PX = 7.3;

/** @type {Map<string, HTMLLIElement>} */
const lanes = new Map();
/** @type {Map<string, HTMLDivElement>} */
const marks = new Map();
/** @type {import("./view.js").View | null} */
let shown = null;
/** Where the world begins; moved when it gets long. */
let epoch = 0;
let width = 1;

/** @returns {number} */
const perMs = () => width / WINDOW_MS;

new ResizeObserver(() => {
  width = Math.max(1, track.clientWidth);
  if (shown) renderTimeline(shown, epoch);
}).observe(track);

drawGrid();

/**
 * @param {import("./view.js").View} view
 * @param {number} now
 */
export function renderTimeline(view, now) {
  shown = view;
  if (epoch === 0) epoch = now;
  keyed(
    byId("lanes"),
    lanes,
    view.lanes,
    ({ id }) => id,
    lane,
    () => {},
  );
  track.style.setProperty("--rows", String(Math.max(1, view.lanes.length)));
  attr(box, "data-dense", view.lanes.length >= DENSE_FROM ? "" : null);
  const rows = new Map(view.lanes.map(({ id }, index) => [id, index]));
  const all = [
    ...view.gaps.map((gap) => ({ key: `gap ${gap.id}`, gap, bar: undefined })),
    ...view.bars.map((bar) => ({ key: `bar ${bar.id}`, gap: undefined, bar })),
  ];
  keyed(
    world,
    marks,
    all,
    ({ key }) => key,
    ({ bar }) => (bar ? barElement(bar) : gapElement()),
    (element, { bar, gap }) => {
      if (bar) placeBar(element, bar, rows.get(bar.row) ?? 0);
      else if (gap) placeGap(element, gap, gap.row === null ? null : (rows.get(gap.row) ?? 0));
    },
  );
  spreadLabels(view.gaps);
  renderHandovers(view);
}

/** @param {number} now */
export function tickTimeline(now) {
  if (shown === null) return;
  world.style.transform = `translateX(${(width - (now - epoch) * perMs()).toFixed(2)}px)`;
  for (const bar of shown.bars) {
    const element = marks.get(`bar ${bar.id}`);
    if (!element) continue;
    const end = endOf(bar, now);
    if (bar.to === null) {
      fill(element, bar, end);
    }
    // The label stays in sight while its bar leaves it.
    const label = /** @type {HTMLElement} */ (element.firstElementChild);
    const hidden = Math.max(0, (now - WINDOW_MS - bar.from) * perMs());
    label.style.transform = `translateX(${hidden.toFixed(1)}px)`;
  }
  for (const gap of shown.gaps) {
    if (gap.to !== null) continue;
    const element = marks.get(`gap ${gap.id}`);
    if (!element) continue;
    stretch(element, gap.from, Math.max(gap.from, now));
    text(/** @type {HTMLElement} */ (element.firstElementChild), duration(now - gap.from));
  }
}

/**
 * @param {import("./view.js").Bar} bar
 * @param {number} now
 */
function endOf(bar, now) {
  return bar.to ?? Math.min(now, bar.cap ?? now);
}

/**
 * @param {HTMLElement} element
 * @param {number} from
 * @param {number} to
 */
function stretch(element, from, to) {
  const pixels = Math.max(0, (to - from) * perMs());
  element.style.width = `${pixels.toFixed(2)}px`;
  return pixels;
}

/** @param {{ id: string, hue: number }} item */
function lane({ id, hue }) {
  const item = el("li", "", el("i", "card-dot"), el("span", "", id));
  setHue(item, hue);
  return item;
}

/** @param {import("./view.js").Bar} bar */
function barElement(bar) {
  const made = el("div", "bar", el("span", "label"), el("i", "stopped"));
  setHue(made, bar.hue);
  return made;
}

function gapElement() {
  return el("div", "gap", el("span"));
}

/**
 * @param {HTMLElement} element
 * @param {import("./view.js").Bar} bar
 * @param {number} row
 */
function placeBar(element, bar, row) {
  element.style.left = `${((bar.from - epoch) * perMs()).toFixed(2)}px`;
  element.style.setProperty("--row", String(row));
  attr(element, "data-live", bar.to === null ? "" : null);
  text(/** @type {HTMLElement} */ (element.firstElementChild), bar.label);
  if (bar.to === null) return;
  fill(element, bar, bar.to);
}

/**
 * As far as it goes, and the part in which it held leadership and could not act.
 * @param {HTMLElement} element
 * @param {import("./view.js").Bar} bar
 * @param {number} end
 */
function fill(element, bar, end) {
  const pixels = stretch(element, bar.from, end);
  attr(element, "data-narrow", pixels < bar.label.length * LETTER_PX + 14 ? "" : null);
  const part = /** @type {HTMLElement} */ (element.lastElementChild);
  stretch(part, bar.stoppedAt ?? end, end);
}

/**
 * @param {HTMLElement} element
 * @param {import("./view.js").Gap} gap
 * @param {number | null} row
 */
function placeGap(element, gap, row) {
  element.style.left = `${((gap.from - epoch) * perMs()).toFixed(2)}px`;
  if (row !== null) {
    element.style.top = `calc(var(--head) + ${row} * var(--lane))`;
    element.style.bottom = "auto";
    element.style.height = "var(--lane)";
  }
  attr(element, "data-live", gap.to === null ? "" : null);
  if (gap.to === null) return;
  stretch(element, gap.from, gap.to);
  text(/** @type {HTMLElement} */ (element.firstElementChild), duration(gap.to - gap.from));
}

/** @param {readonly import("./view.js").Gap[]} gaps */
function spreadLabels(gaps) {
  let free = Number.POSITIVE_INFINITY;
  for (const gap of [...gaps].sort((a, b) => b.from - a.from)) {
    const label = marks.get(`gap ${gap.id}`)?.firstElementChild;
    if (!(label instanceof HTMLElement)) continue;
    const middle = ((gap.from + (gap.to ?? gap.from)) / 2 - epoch) * perMs();
    label.hidden = gap.row !== null || middle + LABEL_PX > free;
    if (!label.hidden) free = middle;
  }
}

function drawGrid() {
  for (let tick = 0; tick <= TICKS; tick++) {
    const left = tick / TICKS;
    const seconds = Math.round((WINDOW_MS * (1 - left)) / 1000);
    const mark = el("div", "tick", el("span", "", tick === TICKS ? "now" : `${seconds} s ago`));
    mark.style.left = `${left * 100}%`;
    if (tick > 0) grid.append(mark);
  }
}

/** @type {Map<string, HTMLTableRowElement>} */
const table = new Map();

/** @param {import("./view.js").View} view */
function renderHandovers(view) {
  byId("no-handovers").hidden = view.handovers.length > 0;
  const body = byId("handovers");
  const head = body.parentElement;
  if (head) head.hidden = view.handovers.length === 0;
  keyed(
    body,
    table,
    view.handovers,
    ({ id }) => id,
    () => el("tr", "", el("td"), el("td"), el("td"), el("td", "number token"), el("td", "number")),
    (row, { from, to, how, token, ms }) => {
      [from, to, how, token, duration(ms)].forEach((value, index) => {
        const cell = row.children[index];
        if (cell) text(cell, value);
      });
    },
  );
}
