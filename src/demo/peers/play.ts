/** The play in the terminal: an election, a killed leader, a network in two parts, a wiped disk, told with what to look for. */
import { systemClock } from "../../kit/clock.js";
import { sleep } from "../../kit/wait.js";
import { formatDuration } from "../../terminal/duration.js";
import { preciseNow } from "../../terminal/lines.js";
import { fewOf } from "./commands.js";
import type { Algorithm } from "../choices.js";
import type { Size } from "./model.js";
import { leadersOf } from "./model.js";
import type { Peers } from "./peers.js";

interface PlayOptions {
  readonly peers: Peers;
  readonly algorithm: Algorithm;
  readonly size: Size;
  readonly ttlMs: number;
  readonly signal: AbortSignal;
  readonly scene: (title: string, lookFor: readonly string[]) => void;
  readonly measured: (text: string) => void;
}

/** Nothing in the play takes as long: a machine that does is too slow to show anything. */
const LIMIT_MS = 60_000;
/** Time for people to read. */
const PAUSE_MS = 1_500;

const TITLES: Readonly<Record<Algorithm, string>> = { raft: "Raft", bully: "Bully" };

export class Play {
  readonly #options: PlayOptions;

  constructor(options: PlayOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { algorithm } = this.#options;
    await this.#opening();
    await this.#crash();
    await this.#partition();
    await (algorithm === "raft" ? this.#wipedDisk() : this.#comeback());
  }

  async #opening(): Promise<void> {
    const { peers, size, scene, algorithm } = this.#options;
    scene(`${size} peers, no server: they elect by ${TITLES[algorithm]}`, OPENING[algorithm]);
    await peers.begin(size);
    await this.#leads("somebody leads", () => true);
    await this.#pause();
  }

  async #crash(): Promise<void> {
    const { peers, scene, measured, algorithm, ttlMs } = this.#options;
    scene("Scene 1: the leader is killed (SIGKILL)", [
      `It cannot say goodbye: its lease has to run out (ttl ${formatDuration(ttlMs)}). Then the others elect.`,
      algorithm === "raft"
        ? "Each voter votes once in a term, and the new term is higher than the old one."
        : "The highest of those that are left sends COORDINATOR when nobody above it answers.",
    ]);
    const old = this.#leader();
    const at = preciseNow();
    peers.kill(old);
    const next = await this.#leads(`another than ${old} leads`, (name) => name !== old);
    measured(`${old} → ${next} in ${Math.round(preciseNow() - at)} ms; the lease of ${old} had to run out`);
    await this.#pause();
    peers.start(old);
    // Bully: the highest takes over again as soon as it is back.
    const highest = peers.state.peers.at(-1)?.name;
    if (algorithm === "bully") await this.#leads(`${highest} leads again`, (name) => name === highest);
    await this.#until(`${old} has started`, () => this.#isUp(old));
    await this.#pause();
  }

  async #partition(): Promise<void> {
    const { peers, scene, measured, algorithm } = this.#options;
    const few = fewOf(peers.state);
    const many = peers.state.peers.map(({ name }) => name).filter((name) => !few.includes(name));
    scene(
      `Scene 2: the network falls into two parts: ${few.join(", ")} | ${many.join(", ")}`,
      SPLIT[algorithm],
    );
    peers.split(few);
    await this.#leads("one of the larger part leads", (name) => many.includes(name));
    if (algorithm === "raft")
      await this.#until("the smaller part has no leader", () =>
        this.#leaders().every((name) => many.includes(name)),
      );
    else await this.#until("two lead", () => this.#leaders().length > 1);
    await this.#pause();
    const leaders = this.#leaders();
    measured(
      leaders.length > 1
        ? `${leaders.join(" and ")} lead at once: each side has a leader`
        : `${leaders[0]} leads; ${few.join(", ")}: no majority, so no leader`,
    );
    await this.#pause();
    scene("The network is whole again", HEALED[algorithm]);
    peers.mend();
    await this.#until("one leads", () => this.#leaders().length === 1);
    await this.#pause();
  }

  async #wipedDisk(): Promise<void> {
    const { peers, scene, measured } = this.#options;
    const victim = peers.state.peers.map(({ name }) => name).findLast((name) => name !== this.#leader())!;
    scene(`Scene 3: ${victim} loses its disk`, [
      "It does not know any more for whom it has voted. If it voted again in the same term, two could be elected.",
      "So it takes no part until all the others have told it how far they are, and begins above that.",
    ]);
    const at = preciseNow();
    const pid = this.#pidOf(victim);
    peers.wipe(victim);
    await this.#until(`${victim} has a new life`, () => this.#isUp(victim) && this.#pidOf(victim) !== pid);
    await this.#until(`${victim} takes part again`, () => {
      const ballot = peers.state.peers.find(({ name }) => name === victim)?.roles.raft?.ballot;
      return ballot !== null && ballot !== undefined && ballot.unfit === null && ballot.term !== "0";
    });
    measured(`${victim} takes part again after ${Math.round(preciseNow() - at)} ms`);
    await this.#pause();
  }

  async #comeback(): Promise<void> {
    const { peers, scene, measured } = this.#options;
    const highest = this.#leader();
    scene(`Scene 3: ${highest} is frozen (SIGSTOP), and wakes up`, [
      "The next lower one waits until the lease has run out, and leads.",
      "When the highest wakes up it bullies: the lower one stops its work first, then the highest leads again.",
    ]);
    peers.freeze(highest);
    const deputy = await this.#leads(`another than ${highest} leads`, (name) => name !== highest);
    await this.#pause();
    const at = preciseNow();
    peers.thaw(highest);
    await this.#leads(`${highest} leads again`, (name) => name === highest);
    measured(`${deputy} → ${highest} in ${Math.round(preciseNow() - at)} ms`);
    await this.#pause();
  }

  #leaders(): string[] {
    const { peers, algorithm } = this.#options;
    return leadersOf(peers.terms(algorithm), preciseNow());
  }

  #leader(): string {
    return this.#leaders()[0] ?? this.#options.peers.terms(this.#options.algorithm).at(-1)?.node ?? "n1";
  }

  #isUp(name: string): boolean {
    return this.#options.peers.state.peers.some((peer) => peer.name === name && peer.state === "up");
  }

  #pidOf(name: string): number | null {
    return this.#options.peers.state.peers.find((peer) => peer.name === name)?.pid ?? null;
  }

  /** Waits until such a peer leads. */
  async #leads(what: string, fits: (name: string) => boolean): Promise<string> {
    const { peers, signal } = this.#options;
    return peers.until(what, LIMIT_MS, signal, () => this.#leaders().find(fits));
  }

  async #until(what: string, so: () => boolean): Promise<void> {
    const { peers, signal } = this.#options;
    await peers.until(what, LIMIT_MS, signal, () => so() || undefined);
  }

  async #pause(): Promise<void> {
    const { signal } = this.#options;
    await sleep(systemClock, PAUSE_MS, signal);
    signal.throwIfAborted();
  }
}

const OPENING: Readonly<Record<Algorithm, readonly string[]>> = {
  raft: [
    "Each is a process with a disk of its own. Whoever wants to lead asks all for their votes, in a term that is new.",
    "A voter writes its vote to its disk before it answers, and never votes twice in one term. A majority elects.",
    "The leader beats; each beat that is acknowledged is a promise not to help another for as long as the lease.",
  ],
  bully: [
    "Whoever wants to lead sends ELECTION to all that are higher. If one of them gives an ANSWER, it waits.",
    "If nobody answers, it sends COORDINATOR to all: the highest that is up leads.",
  ],
};

const SPLIT: Readonly<Record<Algorithm, readonly string[]>> = {
  raft: [
    "No majority acknowledges the beats of a leader in the smaller part: it stops when its lease is over.",
    "The larger part elects. Not before that: its voters have promised to wait.",
  ],
  bully: [
    "Neither side can tell silence from death. The larger part takes the highest for dead, and elects.",
    "Bully has no quorum: look for two leaders at once.",
  ],
};

const HEALED: Readonly<Record<Algorithm, readonly string[]>> = {
  raft: ["The smaller part learns of the new term. There is one leader, as there was all the time."],
  bully: ["The lower leader hears of the higher one and stops. For a while there were two."],
};
