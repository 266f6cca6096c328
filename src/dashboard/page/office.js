/** The seat: who holds it, and how long for if nothing happens. */
import { attr, byId, duration, showToken, text } from "./dom.js";

const panel = byId("office");
const lease = byId("ring-lease");
const margin = byId("ring-margin");
const RING = 1000;

/** @type {import("./view.js").View | null} */
let shown = null;

/** @param {import("./view.js").View} view */
export function renderOffice(view) {
  shown = view;
  panel.hidden = view.office === undefined && view.rows.length > 1;
  text(byId("office-ttl"), view.ttlMs > 0 ? duration(view.ttlMs) : "–");
  showToken(byId("office-token"), view.office?.token ?? null);
  const last = view.handovers[0];
  text(byId("office-gap"), last ? duration(last.ms) : "–");
}

/** @param {number} now */
export function tickOffice(now) {
  if (shown === null || panel.hidden) return;
  const { office } = shown;
  const phase = phaseOf(office, now);
  attr(panel, "data-state", phase.state);
  attr(byId("holder-icon"), "href", `#icon-${phase.icon}`);
  text(byId("holder-name"), phase.name);
  text(byId("holder-state"), phase.text);
  const left = office ? Math.max(0, office.lease.deadline - now) : 0;
  text(byId("countdown"), left > 0 ? `${(left / 1000).toFixed(1)} s` : "");
  text(byId("office-since"), office && phase.state !== "vacant" ? lasting(now - office.since) : "–");
  arc(office ?? null, now);
}

/**
 * In whole seconds: nobody needs tenths of it.
 * @param {number} ms
 */
function lasting(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/**
 * @param {import("./view.js").Office | null | undefined} office
 * @param {number} now
 * @returns {{ state: string, icon: string, name: string, text: string }}
 */
function phaseOf(office, now) {
  if (office === undefined) return { state: "unknown", icon: "starting", name: "not known", text: "" };
  if (office === null || now >= office.lease.end)
    return { state: "vacant", icon: "follower", name: "vacant", text: "nobody leads" };
  const { name, state, lease } = office;
  if (now >= lease.deadline)
    return { state: "vacant", icon: "follower", name, text: "out of time; the others still wait" };
  if (state === "frozen") return { state, icon: "frozen", name, text: "frozen; its lease runs out" };
  if (state === "jeopardy") return { state, icon: "jeopardy", name, text: "cannot renew" };
  return { state: "leader", icon: "crown", name, text: "leads" };
}

/**
 * Bright: the holder may act. Pale: nobody may, so that clocks need not agree.
 * @param {import("./view.js").Office | null} office
 * @param {number} now
 */
function arc(office, now) {
  const span = office?.lease.span ?? 1;
  const part = (/** @type {number} */ ms) => Math.max(0, Math.min(RING, (ms / span) * RING));
  const total = office ? part(office.lease.end - now) : 0;
  const pale = office ? Math.min(total, part(office.lease.end - office.lease.deadline)) : 0;
  margin.setAttribute("stroke-dasharray", `${pale} ${RING}`);
  lease.setAttribute("stroke-dasharray", `0 ${pale} ${Math.max(0, total - pale)} ${RING}`);
}
