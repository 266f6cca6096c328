/** The page: fed by one stream of events, drawn again whenever one comes, ticking in between. */
import { onAction, renderCards, tickCards } from "./cards.js";
import { heard, serverNow } from "./clock.js";
import { demoView } from "./demo.js";
import { renderDialer, tickDialer } from "./dialer.js";
import { attr, byId, el, text } from "./dom.js";
import { renderPeers, tickPeers } from "./peers.js";
import { renderLeadership, tickLeadership } from "./leadership.js";
import { SidecarModel } from "./sidecar.js";
import { renderStorage } from "./storage.js";
import { follow } from "./stream.js";
import { openTabs } from "./tabs.js";
import { renderTimeline, tickTimeline } from "./timeline.js";

const CALM_TICK_MS = 1000;
const SPARK_POINTS = 40;
const NOTICE_MS = 6000;

const TOKEN_NEEDED = {
  title: "Only watching: this address has no token",
  lookFor: [
    "The buttons need the token of this run. It is behind the # of the address that the demo printed in its terminal, at the start and above its last lines.",
    "Open that whole address, or add #token=… to this one.",
  ],
};

const sidecar = new SidecarModel();
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let token = tokenOfAddress();
let live = false;
/** @type {import("./view.js").View | null} */
let view = null;
/** @type {import("./dialer.js").Dialer | null} */
let dialer = null;
/** @type {import("./peers.js").Peers | null} */
let peers = null;
let peersTtl = 0;

addEventListener("hashchange", () => {
  token = tokenOfAddress() ?? token;
  draw();
});

onAction((action) => void runAction(action));
requestAnimationFrame(frame);

void follow("/events", {
  token: () => token,
  onEvent: (event, data) => {
    heard(data.at);
    if (event === "demo") {
      view = data.state ? demoView(data) : null;
      dialer = data.dialer ?? null;
      peers = data.peers;
      peersTtl = data.ttlMs;
      if (view !== null) gauge(view.ops ?? 0, data.at);
    } else {
      sidecar.take(event, data);
      view = sidecar.view();
    }
    draw();
  },
  onLink: (state) => {
    live = state === "live";
    text(byId("link"), live ? "live" : "connection lost");
    attr(byId("link"), "data-state", state);
  },
  askToken: () =>
    new Promise((resolve) => {
      const form = /** @type {HTMLFormElement} */ (byId("ask"));
      form.hidden = false;
      const take = (/** @type {Event} */ event) => {
        event.preventDefault();
        token = /** @type {HTMLInputElement} */ (byId("token")).value;
        form.hidden = true;
        form.removeEventListener("submit", take);
        resolve();
      };
      form.addEventListener("submit", take);
    }),
});

/** Behind the #, which no server and no log ever sees. */
function tokenOfAddress() {
  return new URLSearchParams(location.hash.slice(1)).get("token");
}

function draw() {
  if (view === null && peers === null) return;
  byId("main").hidden = false;
  const barred = token === null ? "open the page by the address with the token" : null;
  if (view === null) text(byId("subtitle"), "live demo: real processes, no server");
  else drawElection(view, barred);
  if (dialer !== null) renderDialer(dialer, barred);
  if (peers !== null) {
    renderPeers(peers, barred, serverNow(), peersTtl);
    openTabs([...(view === null ? [] : ["election"]), ...(dialer === null ? [] : ["dialer"]), "peers"]);
  }
  tick();
}

/**
 * @param {import("./view.js").View} shown
 * @param {string | null} barred
 */
function drawElection(shown, barred) {
  text(byId("subtitle"), shown.subtitle);
  // "Your turn" is nobody's who may not press a button.
  renderScene(barred !== null && shown.scene?.onPage ? TOKEN_NEEDED : shown.scene);
  byId("legend-stopped").hidden = shown.storage === null;
  renderLeadership(shown);
  renderStorage(shown.storage);
  renderCards(shown, barred);
  renderTimeline(shown, serverNow());
  announce(shown);
}

/** What runs by itself between two events. */
function tick() {
  const now = serverNow();
  tickPeers(now);
  if (view === null) return;
  tickLeadership(now);
  tickCards(now);
  tickTimeline(now);
  tickDialer(now);
}

function frame() {
  if ((view !== null || peers !== null) && live) tick();
  if (calm.matches) setTimeout(frame, CALM_TICK_MS);
  else requestAnimationFrame(frame);
}

/** @param {import("./view.js").View["scene"]} scene */
function renderScene(scene) {
  const box = byId("scene");
  box.hidden = scene === null;
  if (scene === null) return;
  text(byId("scene-title"), scene.title);
  const hints = byId("scene-hints");
  const lines = scene.onPage ?? scene.lookFor;
  if (hints.dataset["of"] === lines.join()) return;
  hints.dataset["of"] = lines.join();
  hints.replaceChildren(...lines.map((hint) => el("li", "", hint)));
}

/** @type {string | null} */
let told = null;

/**
 * For those who listen: only when the leader changes.
 * @param {import("./view.js").View} shown
 */
function announce(shown) {
  const { leadership } = shown;
  const news =
    leadership === undefined
      ? shown.rows.map(({ id, text: words }) => `${id}: ${words}.`).join(" ")
      : leadership === null
        ? "Nobody leads."
        : `${leadership.name} leads with token ${leadership.token}.`;
  if (news === told) return;
  told = news;
  text(byId("announce"), news);
}

/** @type {number[]} */
const spark = [];
let sparkAt = 0;

/**
 * @param {number} value
 * @param {number} at
 */
function gauge(value, at) {
  byId("ops").hidden = false;
  text(byId("ops-value"), String(value));
  if (at - sparkAt < 900) return;
  sparkAt = at;
  spark.push(value);
  if (spark.length > SPARK_POINTS) spark.shift();
  const top = Math.max(10, ...spark);
  const first = SPARK_POINTS - spark.length;
  const points = spark.map((v, i) => `${((first + i) / (SPARK_POINTS - 1)) * 120},${27 - (v / top) * 25}`);
  attr(byId("ops-line"), "points", points.join(" "));
}

let notices = 0;

/** @param {import("./view.js").Action} action */
async function runAction(action) {
  try {
    const response = await fetch(action.path, {
      method: "POST",
      headers: { authorization: `Bearer ${token ?? ""}` },
    });
    if (response.ok) return;
    const { error } = await response.json();
    notice(`${action.label}: ${String(error)}`);
  } catch {
    notice(`${action.label}: the server does not answer`);
  }
}

/** @param {string} words */
function notice(words) {
  const box = byId("notice");
  const mine = ++notices;
  text(box, words);
  box.hidden = false;
  setTimeout(() => {
    if (mine === notices) box.hidden = true;
  }, NOTICE_MS);
}
