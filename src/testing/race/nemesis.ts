/**
 * Real processes on a real store, and someone who stops and kills the leader.
 * Works on any store: the author starts the candidates. All it does and all it
 * sees goes into history files; whether that was right is the checker's to say.
 */
import type { ChildProcess } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eachLine } from "./lines.js";
import { Resource } from "./resource.js";

export type FaultKind = "stop" | "kill";

/** What a candidate that takes part is told: hand it on to `raceCandidate` in the child process, as JSON. */
export interface RaceRequest {
  readonly election: string;
  readonly ttlMs: number;
  /** File that the candidate writes down what it saw in. */
  readonly history: string;
  /** Socket of the resource that it writes to while it leads. */
  readonly resource: string;
}

/** Elections on one store, and how often their leaders are stopped and killed. */
export interface Contest {
  /** Starts one candidate as a process of its own, with its standard output piped. */
  readonly start: (request: RaceRequest) => ChildProcess;
  /** Elections under fault at the same time: they do not know of each other. */
  readonly elections: number;
  /** Faults over all elections. */
  readonly faults: Readonly<Record<FaultKind, number>>;
  readonly ttlMs: number;
  /** Every stop lasts until another leads. Default: half of them end when the lease has just run out. */
  readonly longStops?: boolean;
  /** Begins the names of the elections; tells contests apart that share a store. */
  readonly prefix: string;
}

const CANDIDATES = 3;
/** A process has to be started, and the machine has other things to do. */
const SLACK_MS = 20_000;

const monotonic = (): string => `${process.hrtime.bigint()}`;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** One process; what it says of itself. */
class Contender {
  inc: string | undefined;
  token: bigint | undefined;
  readonly exited: Promise<void>;
  readonly #process: ChildProcess;

  constructor(child: ChildProcess, changed: () => void) {
    this.#process = child;
    this.exited = new Promise((resolve) => child.once("close", () => resolve()));
    eachLine(child.stdout!, (line) => {
      const event = JSON.parse(line) as { ev: string; inc: string; token?: string };
      this.inc = event.inc;
      if (event.ev === "leading") this.token = BigInt(event.token!);
      if (event.ev === "stopped") this.token = undefined;
      changed();
    });
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }
}

/** One election, its contenders, and the faults done to whoever leads it. */
class Arena {
  readonly #contest: Contest;
  readonly #election: string;
  readonly #directory: string;
  readonly #resource: string;
  readonly #log: (event: object) => void;
  readonly #contenders = new Set<Contender>();
  readonly #waiting = new Set<() => void>();
  #started = 0;

  constructor(contest: Contest, index: number, place: Place) {
    this.#contest = contest;
    this.#election = `${contest.prefix}-${index}`;
    this.#directory = place.directory;
    this.#resource = place.resource;
    this.#log = place.log;
  }

  async run(faults: readonly FaultKind[]): Promise<void> {
    try {
      for (let i = 0; i < CANDIDATES; i++) this.#start();
      for (const kind of faults) {
        const leader = await this.#leader(-1n);
        // Somewhere in its term: between renewals, in the middle of one, in the middle of a write.
        await pause(50 + Math.random() * 400);
        await (kind === "stop" ? this.#stop(leader) : this.#kill(leader));
        const boundMs = 3 * this.#contest.ttlMs + SLACK_MS;
        this.#log({ ev: "heal", el: this.#election, t: monotonic(), boundMs });
      }
      await this.#leader(-1n);
      await pause(200);
    } finally {
      await this.#end();
    }
  }

  /**
   * Beyond its lease by all means. Every other time only just, so that it wakes
   * while the others are about to take over; else until another leads.
   */
  async #stop(leader: Contender): Promise<void> {
    const { ttlMs } = this.#contest;
    const { inc, token } = leader;
    const t0 = monotonic();
    leader.signal("SIGSTOP");
    if (Math.random() < 0.5 && !this.#contest.longStops) {
      await pause(ttlMs * (1 + Math.random() * 0.3));
    } else {
      await this.#leader(token!, leader);
      await pause(Math.random() * 300);
    }
    leader.signal("SIGCONT");
    this.#log({ ev: "fault", kind: "stop", el: this.#election, inc, t0, t1: monotonic() });
    await this.#leader(token!);
  }

  async #kill(leader: Contender): Promise<void> {
    const { inc, token } = leader;
    const t0 = monotonic();
    leader.signal("SIGKILL");
    this.#log({ ev: "fault", kind: "kill", el: this.#election, inc, t0, t1: monotonic() });
    await leader.exited;
    this.#contenders.delete(leader);
    await this.#leader(token!);
    this.#start();
  }

  /** Waits for a leader with a higher token than this one. */
  #leader(above: bigint, except?: Contender): Promise<Contender> {
    const find = (): Contender | undefined => {
      const leading = [...this.#contenders].filter(
        (one) => one !== except && one.token !== undefined && one.token > above,
      );
      return leading.reduce<Contender | undefined>(
        (best, one) => (best === undefined || one.token! > best.token! ? one : best),
        undefined,
      );
    };
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => done(() => reject(new Error(`nobody leads ${this.#election} with a token above ${above}`))),
        3 * this.#contest.ttlMs + SLACK_MS,
      );
      const look = (): void => {
        const leader = find();
        if (leader !== undefined) done(() => resolve(leader));
      };
      const done = (settle: () => void): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        settle();
      };
      this.#waiting.add(look);
      look();
    });
  }

  #start(): void {
    const history = join(this.#directory, `${this.#election}-${this.#started++}.jsonl`);
    const { start, ttlMs } = this.#contest;
    const child = start({ election: this.#election, ttlMs, history, resource: this.#resource });
    const contender = new Contender(child, () => this.#waiting.forEach((look) => look()));
    this.#contenders.add(contender);
  }

  /** In good order, so that a term reported twice or an event too late is seen as well. */
  async #end(): Promise<void> {
    const all = [...this.#contenders];
    for (const contender of all) for (const name of ["SIGCONT", "SIGTERM"] as const) contender.signal(name);
    const gone = Promise.all(all.map(({ exited }) => exited));
    const late = setTimeout(() => all.forEach((contender) => contender.signal("SIGKILL")), SLACK_MS);
    await gone;
    clearTimeout(late);
  }
}

/** Where a contest takes place: its files, and its resource. */
interface Place {
  readonly directory: string;
  readonly resource: string;
  readonly log: (event: object) => void;
}

/** Runs one contest to its end. The history goes to `directory`, which is made if it is not there. */
export async function fight(contest: Contest, directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true });
  const file = join(directory, `${contest.prefix}-nemesis.jsonl`);
  const log = (event: object): void => appendFileSync(file, `${JSON.stringify(event)}\n`);
  // A socket's path is short; the history's may not be.
  const place = mkdtempSync(join(tmpdir(), "conclave-race-"));
  const socket = join(place, "resource");
  const resource = await Resource.listen(socket, log);
  try {
    const there = { directory, resource: socket, log };
    const arenas = Array.from({ length: contest.elections }, (_, i) => new Arena(contest, i, there));
    const shares = deal(contest.faults, contest.elections);
    const ends = await Promise.allSettled(arenas.map((arena, i) => arena.run(shares[i]!)));
    const failed = ends.find((end) => end.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  } finally {
    await resource[Symbol.asyncDispose]();
    rmSync(place, { recursive: true, force: true });
    log({ ev: "end", t: monotonic() });
  }
}

/** Deals the faults out evenly, in any order. */
function deal(faults: Readonly<Record<FaultKind, number>>, elections: number): FaultKind[][] {
  const deck = Object.entries(faults).flatMap(([kind, count]) =>
    Array<FaultKind>(count).fill(kind as FaultKind),
  );
  const shuffled = deck.map((kind) => ({ kind, at: Math.random() })).toSorted((a, b) => a.at - b.at);
  const shares: FaultKind[][] = Array.from({ length: elections }, () => []);
  shuffled.forEach(({ kind }, i) => shares[i % elections]!.push(kind));
  return shares;
}
