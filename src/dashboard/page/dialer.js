/** The double dialer: who was called how often, by whom, and what the exchange refused. */
import { bind } from "./cards.js";
import { attr, byId, el, icon, keyed, setHue, text } from "./dom.js";
import { renderLog, renderStory, weekday } from "./dialer-story.js";
import { hueOf } from "./view.js";

/**
 * @typedef {"connected" | "repeat" | "stale"} Verdict
 * @typedef {{ customer: string, list: number, by: string, token: string | null, outcome: Verdict }} Ring
 * @typedef {{ once: number, more: number, missed: number, repeats: number, stale: number }} Sums
 * @typedef {{ by: string, afterNineMs: number, successor: string | null, gapMs: number | null }} Fall
 * @typedef {{ at: number, moment: string | null, fall: Fall | null, settled: boolean, sums: Sums }} Day
 *
 * @typedef {object} Dialer
 * @property {"idle" | "starting" | "running" | "done" | "failed"} phase
 * @property {{ id: string, label: string }[]} moments
 * @property {string[]} customers
 * @property {number} dayMs
 * @property {{ name: string, state: "starting" | "follower" | "leader" | "frozen" | "gone" }[]} instances
 * @property {Day[]} days
 * @property {Ring[]} log
 * @property {string | null} error
 */

const ICONS = { leader: "crown", follower: "follower", starting: "starting", frozen: "frozen", gone: "gone" };
const WORDS = { leader: "leads", follower: "follows", starting: "starting", frozen: "frozen", gone: "dead" };
const NINE_IN_DAY = 9 / 24;
const DAY_MINUTES = 24 * 60;

/** @type {Record<Verdict, string>} */
const MARKS = { connected: "called", repeat: "repeat refused", stale: "old token refused" };

const select = /** @type {HTMLSelectElement} */ (byId("moment"));
const start = /** @type {HTMLButtonElement} */ (byId("dial"));

/** @type {Dialer | null} */
let shown = null;
/** @type {string | null} */
let barredBy = null;

select.addEventListener("change", () => {
  if (shown) renderControls(shown, barredBy);
});

/**
 * @param {Dialer} dialer
 * @param {string | null} barred why no button works at all
 */
export function renderDialer(dialer, barred) {
  shown = dialer;
  barredBy = barred;
  renderControls(dialer, barred);
  renderCrew(dialer);
  renderPlain(dialer);
  renderFenced(dialer);
  renderStory(dialer);
  renderLog(dialer, hueOfInstance);
  renderOutcome(dialer);
}

/**
 * The clock of the story: nine o'clock is when it says so.
 * @param {number} now
 */
export function tickDialer(now) {
  if (shown === null) return;
  const { days, dayMs, phase } = shown;
  const first = days[0];
  const clock = byId("story-clock");
  if (first === undefined || phase !== "running") return attr(clock, "data-still", "");
  const since = (now - first.at) / dayMs + NINE_IN_DAY;
  const day = Math.max(0, Math.floor(since));
  const minutes = Math.floor((((since % 1) + 1) % 1) * DAY_MINUTES);
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  attr(clock, "data-still", null);
  text(clock, `${weekday(day)} ${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`);
}

/** @param {string} name */
function hueOfInstance(name) {
  return hueOf(Number(/\d+$/.exec(name)?.[0] ?? 1) - 1);
}

/**
 * @param {Dialer} dialer
 * @param {string | null} barred
 */
function renderControls({ moments, phase, dayMs }, barred) {
  if (select.options.length === 0) {
    const options = [{ id: "week", label: "every one of these, one a day" }, ...moments];
    select.append(
      ...options.map(({ id, label }) => {
        const option = el("option", "", label);
        option.value = id;
        return option;
      }),
    );
  }
  text(byId("story-pace"), `A day lasts ${dayMs / 1000} seconds here.`);
  const busy = phase === "starting" || phase === "running";
  const label = busy ? "Under way" : phase === "idle" ? "Start the calls" : "Start again";
  const action = { id: "dial", label, path: `/dialer/${select.value}`, refusal: null };
  bind(start, action, label, barred ?? (busy ? "the calls of these days are not over yet" : null));
}

/** @type {Map<string, HTMLLIElement>} */
const crew = new Map();

/** @param {Dialer} dialer */
function renderCrew({ instances, phase }) {
  const busy = phase === "starting" || phase === "running";
  keyed(
    byId("crew"),
    crew,
    instances,
    ({ name }) => name,
    ({ name }) => {
      const sign = icon("");
      const made = el("li", "member", el("i", "card-dot"), el("strong", "", name), sign, el("span", "", ""));
      setHue(made, hueOfInstance(name));
      signs.set(made, sign);
      return made;
    },
    (member, { state }) => {
      attr(member, "data-state", busy ? state : "off");
      signs.get(member)?.show(busy ? ICONS[state] : "starting");
      const words = member.lastElementChild;
      if (words) text(words, busy ? WORDS[state] : phase === "idle" ? "not started" : "ended");
    },
  );
}

/** @type {WeakMap<HTMLElement, ReturnType<typeof icon>>} */
const signs = new WeakMap();

/** @type {Map<string, HTMLTableRowElement>} */
const plainRows = new Map();

/** @param {Dialer} dialer */
function renderPlain({ customers, days, log }) {
  const plain = days[0];
  const rings = log.filter(({ list }) => list === plain?.at);
  fact("plain-once", plain ? `${plain.sums.once} of ${customers.length}` : "–");
  fact("plain-more", plain ? String(plain.sums.more) : "–", (plain?.sums.more ?? 0) > 0);
  fact("plain-calls", plain ? String(rings.length) : "–");
  keyed(
    byId("plain-rows"),
    plainRows,
    customers,
    (customer) => customer,
    (customer) => el("tr", "", rowHead(customer), cell(), el("td", "number")),
    (row, customer) => {
      const calls = rings.filter((ring) => ring.customer === customer);
      const [, marks, count] = row.children;
      if (marks instanceof HTMLElement) renderMarks(marks, calls);
      if (count) text(count, calls.length === 0 ? "" : `${calls.length}×`);
      if (count) attr(count, "data-bad", calls.length > 1 ? "" : null);
    },
  );
}

/** @type {Map<string, HTMLTableRowElement>} */
const fencedRows = new Map();

/** @param {Dialer} dialer */
function renderFenced({ customers, days, log }) {
  const fenced = days.slice(1);
  const sum = (/** @type {keyof Sums} */ key, /** @type {Day[]} */ of = fenced) =>
    of.reduce((total, { sums }) => total + sums[key], 0);
  const known = fenced.length > 0;
  const missed = sum(
    "missed",
    fenced.filter(({ settled }) => settled),
  );
  fact("fenced-once", known ? `${sum("once")} of ${customers.length * fenced.length}` : "–");
  fact("fenced-more", known ? String(sum("more")) : "–", sum("more") > 0);
  fact("fenced-missed", known ? String(missed) : "–", missed > 0);
  fact("fenced-repeats", known ? String(sum("repeats")) : "–");
  fact("fenced-stale", known ? String(sum("stale")) : "–");
  const heads = [el("th"), ...fenced.map((_, index) => el("th", "", weekday(index + 1)))];
  const head = byId("fenced-head");
  if (head.childElementCount !== heads.length) head.replaceChildren(...heads.map(scoped));
  keyed(
    byId("fenced-rows"),
    fencedRows,
    customers,
    (customer) => customer,
    (customer) => el("tr", "", rowHead(customer)),
    (row, customer) => {
      while (row.childElementCount > fenced.length + 1) row.lastElementChild?.remove();
      while (row.childElementCount < fenced.length + 1) row.append(cell());
      fenced.forEach(({ at }, index) => {
        const marks = row.children[index + 1];
        const calls = log.filter((ring) => ring.customer === customer && ring.list === at);
        if (marks instanceof HTMLElement) renderMarks(marks, calls);
      });
    },
  );
}

/** @param {HTMLElement} head */
function scoped(head) {
  attr(head, "scope", "col");
  return head;
}

/** @param {string} customer */
function rowHead(customer) {
  const head = el("th", "", customer);
  attr(head, "scope", "row");
  return head;
}

function cell() {
  return el("td", "", el("span", "marks"), el("span", "quiet"));
}

/**
 * A mark for each call, in the colour of who made it.
 * @param {HTMLElement} into
 * @param {readonly Ring[]} rings
 */
function renderMarks(into, rings) {
  const [marks, words] = into.children;
  const key = rings.map(({ by, outcome }) => `${by} ${outcome}`).join();
  if (!marks || !words || into.dataset["of"] === key) return;
  into.dataset["of"] = key;
  marks.replaceChildren(
    ...rings.map(({ by, outcome, token }) => {
      const mark = el("i", "mark");
      attr(mark, "data-outcome", outcome);
      attr(mark, "title", `${by}${token === null ? "" : `, token ${token}`}: ${MARKS[outcome]}`);
      setHue(mark, hueOfInstance(by));
      return mark;
    }),
  );
  text(words, rings.map(({ by, outcome }) => `${MARKS[outcome]} by ${by}`).join(", "));
}

/**
 * @param {string} id
 * @param {string} value
 * @param {boolean} [bad]
 */
function fact(id, value, bad = false) {
  text(byId(id), value);
  attr(byId(id), "data-bad", bad ? "" : null);
}

/** @param {Dialer} dialer */
function renderOutcome({ phase, days, customers, log, error }) {
  const box = byId("outcome");
  attr(box, "data-phase", phase);
  const wrong = days.slice(1).some(({ sums }) => sums.more > 0 || sums.missed > 0);
  attr(box, "data-bad", phase === "failed" || wrong ? "" : null);
  if (phase === "failed") return text(box, `It could not be shown: ${error ?? "no reason is known"}`);
  if (phase === "starting") return text(box, "Five instances are being started.");
  if (phase !== "done") return text(box, "");
  const [plain, ...fenced] = days;
  const total = (/** @type {keyof Sums} */ key) => fenced.reduce((sum, { sums }) => sum + sums[key], 0);
  const due = customers.length * fenced.length;
  const times = customers.map((customer) => {
    const calls = log.filter((ring) => ring.list === plain?.at && ring.customer === customer);
    return calls.length;
  });
  const [least, most] = [Math.min(...times), Math.max(...times)];
  const without = `every customer was called ${least === most ? most : `${least} to ${most}`} times`;
  const counts = `${total("once")} of ${due} calls were made once, ${total("more")} twice, ${total("missed")} missed`;
  const refused = `${total("repeats")} repeats and ${total("stale")} with an old token were refused`;
  text(box, `Without Conclave ${without}. With it ${counts}; ${refused}.`);
}
