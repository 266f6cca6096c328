/** What was done to the leader on each day, and the exchange's log. */
import { attr, byId, duration, el, keyed, setHue, shortToken, text } from "./dom.js";

const WEEK = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** @type {Record<string, string>} */
const OUTCOMES = {
  connected: "connected",
  repeat: "refused: has been called",
  stale: "refused: the token is too old",
};

/**
 * The day without Conclave is the Sunday.
 * @param {number} index
 */
export function weekday(index) {
  return WEEK[index] ?? `day ${index}`;
}

/** @type {Map<string, HTMLLIElement>} */
const entries = new Map();

/** @param {import("./dialer.js").Dialer} dialer */
export function renderStory({ days, moments }) {
  const fenced = days.slice(1).map((day, index) => ({ ...day, name: weekday(index + 1) }));
  byId("story-hint").hidden = fenced.length > 0;
  keyed(
    byId("story"),
    entries,
    fenced,
    ({ at }) => String(at),
    ({ name }) => el("li", "", el("strong", "", name), el("span", "")),
    (entry, day) => {
      const label = moments.find(({ id }) => id === day.moment)?.label ?? "";
      const words = entry.lastElementChild;
      if (words) text(words, day.fall === null ? `The leader will be ${label}.` : sentence(day, day.fall));
      attr(entry, "data-state", day.settled ? "over" : day.fall ? "fallen" : "ahead");
    },
  );
}

/**
 * @param {import("./dialer.js").Day} day
 * @param {import("./dialer.js").Fall} fall
 */
function sentence({ moment, sums }, { by, afterNineMs, successor, gapMs }) {
  const early = afterNineMs < 0 ? `${duration(-afterNineMs)} before` : `${duration(afterNineMs)} after`;
  /** @type {Record<string, string>} */
  const falls = {
    "before-claim": `${by} led and was killed ${early} 9:00.`,
    "after-claim": `${by} had claimed the list and was killed before its first call.`,
    "during-calls": `${by} was killed during its third call.`,
    "before-noting": `${by} had called everybody and was killed before it could write that down.`,
    frozen: `${by} was frozen after its second call.`,
  };
  const said = [falls[moment ?? ""] ?? `${by} fell.`];
  if (successor !== null && gapMs !== null) {
    said.push(`${successor} began the list ${duration(gapMs)} later.`);
    if (sums.repeats > 0) said.push(`${sums.repeats} repeats were refused.`);
  }
  if (sums.stale > 0) said.push(`${by} woke up and dialled on: refused, its token was too old.`);
  return said.join(" ");
}

/** @type {Map<string, HTMLTableRowElement>} */
const lines = new Map();

/**
 * @param {import("./dialer.js").Dialer} dialer
 * @param {(instance: string) => number} hueOf
 */
export function renderLog({ log, days }, hueOf) {
  const names = new Map(days.map(({ at }, index) => [at, weekday(index)]));
  const run = days[0]?.at ?? 0;
  byId("log-hint").hidden = log.length > 0;
  byId("log-box").hidden = log.length === 0;
  text(byId("log-count"), log.length === 0 ? "" : `${log.length} calls`);
  keyed(
    byId("rings"),
    lines,
    log.map((ring, index) => ({ ...ring, id: `${run}/${index}` })).reverse(),
    ({ id }) => id,
    ({ customer, list, by, token, outcome }) => {
      const caller = el("td", "caller", el("i", "card-dot"), by);
      setHue(caller, hueOf(by));
      const row = el(
        "tr",
        "",
        el("td", "when", `${names.get(list) ?? ""} 9:00`),
        caller,
        el("td", "", customer),
        el("td", "token", token === null ? "none" : shortToken(token)),
        el("td", "", OUTCOMES[outcome] ?? outcome),
      );
      attr(row, "data-outcome", outcome);
      return row;
    },
    () => {},
  );
}
