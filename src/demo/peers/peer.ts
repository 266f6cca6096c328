/**
 * One peer, a program of its own: a voter of Raft, a peer of Bully, or both,
 * each with an election it always stands in. It tells whoever started it what
 * happens, and what is on its disk.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { bullyBackend } from "../../backends/bully/index.js";
import { peeringOf, RaftBackend } from "../../backends/raft/backend.js";
import { decodeJournal } from "../../backends/raft/journal-records.js";
import type { RaftNode } from "../../backends/raft/node.js";
import { nodeOf } from "../../backends/raft/shared-node.js";
import { Election } from "../../election/election.js";
import type { Term } from "../../api/term.js";
import { describe } from "../../kit/errors.js";
import { onAbort } from "../../kit/wait.js";
import { preciseNow } from "../../terminal/lines.js";
import type { Backend } from "../../seam/backend.js";
import type { Algorithm } from "../choices.js";
import { isOrders } from "./wire.js";
import type { Ballot, Orders, Part, Word } from "./wire.js";

const ELECTION = "peers";
/** How often a voter's promise is looked at. */
const LOOK_MS = 80;
/** The same trouble is told again when it had been away for so long. */
const QUIET_MS = 3_000;

type OnDisk = Pick<Ballot, "term" | "vote" | "leader">;

const stop = new AbortController();

function tell(word: Word): void {
  // Fails only when the director is gone; then the disconnect says so.
  if (process.connected) process.send?.(word, undefined, undefined, () => {});
}

/** Without what makes it unique: `n1-5f0c…` is a start of `n1`. */
function nameOf(candidate: string): string {
  return candidate.replace(/-[^-]*$/, "");
}

/** Without what each voter said: a learner wants to know that there is no majority. */
function plainly(text: string): string {
  return text.replace(/,? and not enough of them agreed/, "").replace(/ \(.*$|: this voter.*$/s, "");
}

async function stand(algorithm: Algorithm, backend: Backend, { name, ttlMs }: Orders): Promise<void> {
  const election = new Election({
    name: ELECTION,
    id: name,
    backend,
    ttlMs,
    retryMs: Math.round(ttlMs / 5),
    closeBackend: true,
    allowUnfenced: true,
  });
  const led = (kind: "elected" | "lease", { token, remainingMs }: Term): void =>
    tell({ kind, algorithm, at: preciseNow(), token: `${token}`, remainingMs });
  const last = { text: "", at: 0 };
  election.on("elected", ({ term }) => led("elected", term));
  election.on("renewal", ({ term, ok }) => void (ok && led("lease", term)));
  election.on("ended", ({ term, end }) =>
    tell({ kind: "ended", algorithm, at: preciseNow(), token: `${term.token}`, reason: end.reason }),
  );
  // Of a voter the ballot says it, and better.
  if (algorithm === "bully")
    election.on("leader", ({ leader }) =>
      tell({ kind: "follows", algorithm, leader: leader === null ? null : nameOf(leader.candidate) }),
    );
  election.on("error", ({ error }) => {
    const text = plainly(describe(error));
    const known = text === last.text && preciseNow() - last.at < QUIET_MS;
    Object.assign(last, { text, at: preciseNow() });
    if (!known) tell({ kind: "says", algorithm, text });
  });
  await election.run((term) => new Promise((resolve) => onAbort(term.signal, resolve)), {
    signal: stop.signal,
  });
  await election.close();
}

function bully({ name }: Orders, { peers, dial }: Part): Backend {
  const log = (line: string): void =>
    tell({ kind: "says", algorithm: "bully", text: line.replace(/^[^:]*: /, "") });
  return bullyBackend({ peers, self: name, dial, insecure: true, unsafe: true, log });
}

function raft({ name, directory }: Orders, { peers, dial }: Part): Backend {
  const log = (text: string): void =>
    tell({ kind: "says", algorithm: "raft", text: text.replace(/^voter "[^"]*": /, "") });
  const options = { peers, self: name, dir: directory, dial, insecure: true, log };
  return new RaftBackend(options, process.env, {
    peering: peeringOf,
    node: async (...parts) => {
      const shared = await nodeOf(...parts);
      watch(shared.node, directory);
      return shared;
    },
  });
}

/** Tells of the voter whenever something about it is not as it was. */
function watch(node: RaftNode, directory: string): void {
  let told = "";
  let disk: OnDisk = { term: "0", vote: null, leader: null };
  const look = async (): Promise<void> => {
    const at = preciseNow();
    const answer = await node.handle({ kind: "who", election: ELECTION, change: -1, waitMs: 0 });
    if (answer.kind !== "who") return;
    if (`${answer.term}` !== disk.term) disk = (await voteOnDisk(directory)) ?? disk;
    const { promised } = answer;
    const to = promised === null ? null : { to: nameOf(promised.bid.candidate), leftMs: promised.leftMs };
    const ballot = { ...disk, promised: to, unfit: answer.unfit ?? null };
    // A promise that is not renewed runs out, as was told before.
    const news = JSON.stringify([
      disk,
      to?.to,
      ballot.unfit,
      to === null ? 0 : Math.round((at + to.leftMs) / 20),
    ]);
    if (news === told) return;
    told = news;
    tell({ kind: "ballot", at, ...ballot });
  };
  const timer = setInterval(() => void look().catch(() => {}), LOOK_MS);
  onAbort(stop.signal, () => clearInterval(timer));
}

/** What the journal says: what this voter would know after a crash. */
async function voteOnDisk(directory: string): Promise<OnDisk | undefined> {
  const { records } = decodeJournal(await readFile(join(directory, "journal")));
  const last = records.findLast((record) => record.kind === "vote" && record.election === ELECTION);
  if (last?.kind !== "vote") return undefined;
  const [vote, leader] = [last.vote, last.leader].map((bid) => (bid === null ? null : nameOf(bid.candidate)));
  return { term: `${last.term}`, vote: vote ?? null, leader: leader ?? null };
}

async function run(orders: Orders): Promise<void> {
  await Promise.all(
    orders.parts.map((part) => {
      const backend = part.algorithm === "raft" ? raft(orders, part) : bully(orders, part);
      return stand(part.algorithm, backend, orders);
    }),
  );
  if (process.connected) process.disconnect();
}

// Ctrl-C in the terminal reaches every process; what happens then is not for this one to say.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => stop.abort());
// Without a director there is no demo.
process.on("disconnect", () => stop.abort());
process.once("message", (orders: unknown) => {
  if (!isOrders(orders)) return process.exit(2);
  void run(orders);
});
tell({ kind: "ready" });
