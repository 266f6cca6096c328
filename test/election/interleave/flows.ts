/** What a program does with an election or a lock, from the first call to the last. */
import type { Script } from "./scripted-backend.js";
import { PLAIN } from "./scripted-backend.js";
import { TTL_MS } from "./scene.js";
import type { Scene } from "./scene.js";

export interface Flow {
  readonly name: string;
  readonly kind: "election" | "lock";
  readonly script: Script;
  readonly maxTermMs?: number;
  /** How many terms it has if nothing disturbs it. */
  readonly terms: number;
  /** Settles, whatever happens: what a call rejects with is its own business. */
  readonly act: (scene: Scene) => Promise<void>;
}

/** Long enough for one renewal. */
const OFFICE_MS = TTL_MS / 2;
/** A grant this old does not open a term: it is confirmed first. */
const STALE: Script = { ...PLAIN, grantAgeMs: TTL_MS };
/** Giving back takes longer than to be elected again. */
const SLOW: Script = { ...PLAIN, releaseHops: 60 };

async function campaign(scene: Scene): Promise<void> {
  const term = await scene.election.campaign({ signal: scene.stop.signal });
  scene.given.add(term);
  await scene.pause(OFFICE_MS);
  await term.resign();
}

async function tryCampaign(scene: Scene): Promise<void> {
  const term = await scene.election.tryCampaign({ signal: scene.stop.signal });
  if (term === null) return;
  scene.given.add(term);
  await scene.pause(OFFICE_MS);
  await scene.election.resign();
}

/** The work returns by itself, and again in a second term; then the caller stops. */
async function run(scene: Scene): Promise<void> {
  const { signal } = scene.stop;
  const running = scene.election.run((term) => scene.work(term, OFFICE_MS, 2), { signal }).catch(() => {});
  await scene.pause(3 * OFFICE_MS);
  scene.stop.abort();
  await running;
}

/** Work that does not even wait once. */
async function runAtOnce(scene: Scene): Promise<void> {
  let left = 2;
  await scene.election.run(
    () => {
      if (--left === 0) scene.stop.abort();
    },
    { signal: scene.stop.signal },
  );
}

async function acquire(scene: Scene): Promise<void> {
  const term = await scene.lock.acquire({ signal: scene.stop.signal });
  scene.given.add(term);
  await scene.pause(OFFICE_MS);
  await scene.lock.release();
}

async function tryAcquire(scene: Scene): Promise<void> {
  const term = await scene.lock.tryAcquire({ signal: scene.stop.signal });
  if (term === null) return;
  scene.given.add(term);
  await term.resign();
}

async function acquireTwice(scene: Scene): Promise<void> {
  await Promise.allSettled([acquire(scene), acquire(scene)]);
}

async function withLock(scene: Scene): Promise<void> {
  await scene.lock.withLock((term) => scene.work(term, OFFICE_MS, 2), { signal: scene.stop.signal });
}

async function withLockTimed(scene: Scene): Promise<void> {
  await scene.lock.withLock((term) => scene.work(term, 10, 1), { timeoutMs: 500, signal: scene.stop.signal });
}

/** Someone follows who leads meanwhile, by both ways. */
async function followed(scene: Scene): Promise<void> {
  const { election, stop } = scene;
  const off = election.on("leader", () => {});
  const follow = async (): Promise<void> => {
    for await (const leader of election.observe({ signal: stop.signal })) if (leader !== null) return;
  };
  const following = follow();
  await election.leader({ signal: stop.signal }).catch(() => {});
  await campaign(scene).catch(() => {});
  off();
  stop.abort();
  await following;
}

/** A caller that gives up, and campaigns again with the same object. */
async function again(scene: Scene): Promise<void> {
  await campaign(scene).catch(() => {});
  const term = await scene.election.campaign();
  scene.given.add(term);
  await term.resign();
}

/** The next campaign does not wait until the last term is given back. */
async function overtaking(scene: Scene): Promise<void> {
  const { signal } = scene.stop;
  const first = await scene.election.campaign({ signal });
  scene.given.add(first);
  const leaving = first.resign();
  const second = await scene.election.campaign({ signal });
  scene.given.add(second);
  await Promise.all([leaving, second.resign()]);
}

export const FLOWS: readonly Flow[] = [
  { name: "campaign", terms: 1, kind: "election", script: PLAIN, act: campaign },
  {
    name: "campaign, limited",
    terms: 1,
    kind: "election",
    script: PLAIN,
    maxTermMs: 100 * TTL_MS,
    act: campaign,
  },
  { name: "campaign, confirmed", terms: 1, kind: "election", script: STALE, act: campaign },
  {
    name: "campaign, confirmed by nobody",
    terms: 1,
    kind: "election",
    script: { ...STALE, confirms: "unknown" },
    act: campaign,
  },
  {
    name: "tryCampaign, lost while confirming",
    terms: 0,
    kind: "election",
    script: { ...STALE, confirms: "lost" },
    act: tryCampaign,
  },
  {
    name: "campaign, granted late",
    terms: 1,
    kind: "election",
    script: { ...PLAIN, deaf: true },
    act: campaign,
  },
  { name: "campaign again", terms: 2, kind: "election", script: PLAIN, act: again },
  { name: "campaign again at once", terms: 2, kind: "election", script: SLOW, act: overtaking },
  { name: "campaign, followed", terms: 1, kind: "election", script: PLAIN, act: followed },
  { name: "tryCampaign", terms: 1, kind: "election", script: PLAIN, act: tryCampaign },
  { name: "tryCampaign, confirmed", terms: 1, kind: "election", script: STALE, act: tryCampaign },
  {
    name: "tryCampaign, granted late",
    terms: 1,
    kind: "election",
    script: { ...PLAIN, deaf: true },
    act: tryCampaign,
  },
  {
    name: "tryCampaign, held elsewhere",
    terms: 0,
    kind: "election",
    script: { ...PLAIN, busy: 1 },
    act: tryCampaign,
  },
  { name: "run", terms: 3, kind: "election", script: PLAIN, act: run },
  { name: "run, confirmed", terms: 3, kind: "election", script: STALE, act: run },
  {
    name: "run, released twice",
    terms: 3,
    kind: "election",
    script: { ...PLAIN, failedReleases: 1 },
    act: run,
  },
  { name: "run, rotated", terms: 4, kind: "election", script: PLAIN, maxTermMs: OFFICE_MS / 2, act: run },
  { name: "run, work without a wait", terms: 2, kind: "election", script: PLAIN, act: runAtOnce },
  { name: "acquire", terms: 1, kind: "lock", script: PLAIN, act: acquire },
  { name: "acquire, two callers", terms: 2, kind: "lock", script: PLAIN, act: acquireTwice },
  { name: "tryAcquire", terms: 1, kind: "lock", script: PLAIN, act: tryAcquire },
  { name: "tryAcquire, confirmed", terms: 1, kind: "lock", script: STALE, act: tryAcquire },
  { name: "withLock", terms: 1, kind: "lock", script: PLAIN, act: withLock },
  { name: "withLock, in time", terms: 1, kind: "lock", script: STALE, act: withLockTimed },
];
