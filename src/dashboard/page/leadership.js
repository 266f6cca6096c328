/** Leadership: who holds it, and until when if nothing happens. */
import { attr, byId, duration, showToken, text } from "./dom.js";

const panel = byId("leadership");
const lease = byId("ring-lease");
const margin = byId("ring-margin");
const RING = 1000;

/** @type {import("./view.js").View | null} */
let shown = null;

/** @param {import("./view.js").View} view */
export function renderLeadership(view) {
  shown = view;
  panel.hidden = view.leadership === undefined && view.rows.length > 1;
  text(byId("leadership-ttl"), view.ttlMs > 0 ? duration(view.ttlMs) : "–");
  showToken(byId("leadership-token"), view.leadership?.token ?? null);
  const last = view.handovers[0];
  text(byId("leadership-gap"), last ? duration(last.ms) : "–");
}

/** @param {number} now */
export function tickLeadership(now) {
  if (shown === null || panel.hidden) return;
  const { leadership } = shown;
  const phase = phaseOf(leadership, now);
  attr(panel, "data-state", phase.state);
  attr(byId("holder-icon"), "href", `#icon-${phase.icon}`);
  text(byId("holder-name"), phase.name);
  text(byId("holder-state"), phase.text);
  const left = leadership ? Math.max(0, leadership.lease.deadline - now) : 0;
  text(byId("countdown"), left > 0 ? `${(left / 1000).toFixed(1)} s` : "");
  text(
    byId("leadership-since"),
    leadership && phase.state !== "vacant" ? lasting(now - leadership.since) : "–",
  );
  arc(leadership ?? null, now);
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
 * @param {import("./view.js").Leadership | null | undefined} leadership
 * @param {number} now
 * @returns {{ state: string, icon: string, name: string, text: string }}
 */
function phaseOf(leadership, now) {
  if (leadership === undefined) return { state: "unknown", icon: "starting", name: "not known", text: "" };
  if (leadership === null || now >= leadership.lease.end)
    return { state: "vacant", icon: "follower", name: "vacant", text: "nobody leads" };
  const { name, state, lease } = leadership;
  if (now >= lease.deadline)
    return { state: "vacant", icon: "follower", name, text: "out of time; the others still wait" };
  if (state === "frozen") return { state, icon: "frozen", name, text: "frozen; its lease runs out" };
  if (state === "jeopardy") return { state, icon: "jeopardy", name, text: "cannot renew" };
  return { state: "leader", icon: "crown", name, text: "leads" };
}

/**
 * Bright: the holder may act. Pale: nobody may, so that clocks need not agree.
 * @param {import("./view.js").Leadership | null} leadership
 * @param {number} now
 */
function arc(leadership, now) {
  const span = leadership?.lease.span ?? 1;
  const part = (/** @type {number} */ ms) => Math.max(0, Math.min(RING, (ms / span) * RING));
  const total = leadership ? part(leadership.lease.end - now) : 0;
  const pale = leadership ? Math.min(total, part(leadership.lease.end - leadership.lease.deadline)) : 0;
  margin.setAttribute("stroke-dasharray", `${pale} ${RING}`);
  lease.setAttribute("stroke-dasharray", `0 ${pale} ${Math.max(0, total - pale)} ${RING}`);
}
