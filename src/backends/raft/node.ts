/** A voter as a whole: journal, voter and acceptor, the door for others, and links to the other voters. */
import { ConclaveError, describe } from "../../kit/errors.js";
import { type Stop, StopSource } from "../../kit/stop.js";
import { bounded, sleep } from "../../kit/wait.js";
import type { Clock } from "../../seam/clock.js";
import type { Address } from "./address.js";
import { DiskJournal } from "./journal.js";
import type { JournalDisk } from "./journal.js";
import { lastVotes } from "./journal-records.js";
import type { JournalRecord, StartRecord } from "./journal-records.js";
import { assertOwn, beginning } from "./join.js";
import type { Beginning } from "./join.js";
import type { ElectionAnswer, WhoRequest } from "./messages.js";
import type { NodeRequest, StateAnswer, StateRequest } from "./node-messages.js";
import type { Peering } from "./peering.js";
import { askState, statePage } from "./state-pages.js";
import { Proposer } from "./proposer.js";
import { Acceptor } from "./register.js";
import type { RegisterRequest } from "./register.js";
import { decodeRequest, encode } from "./transport/wire.js";
import type { Answer, Request } from "./transport/wire.js";
import { twinsOf } from "./transport/lives.js";
import { Door } from "./transport/server.js";
import { unfitAnswer } from "./unfit-answer.js";
import { Voter } from "./voter.js";
import { Waiting } from "./waiting.js";
import { Watchers } from "./watchers.js";

/** Longest a request to another voter may take, where nobody said otherwise. */
const LIMIT_MS = 2_000;
const JOIN_AGAIN_MS = 100;
const LONGEST_JOIN_AGAIN_MS = 1_000;
const NEVER = new StopSource();
export interface NodeOptions {
  readonly self: string;
  readonly bind: Address;
  readonly disk: JournalDisk;
  readonly peering: Peering;
  readonly clock: Clock;
  readonly log: (line: string) => void;
  /** Where others come in, if not by TCP (the simulator). */
  readonly door?: Entrance | undefined;
}

/** What lets others in. */
interface Entrance {
  listen(bind: Address): Promise<void>;
  close(): Promise<void>;
}

interface Past {
  readonly birth: string;
  readonly voter: Voter;
  readonly acceptor: Acceptor;
  readonly start: StartRecord;
}

export class RaftNode {
  readonly #options: NodeOptions;
  readonly #journal: DiskJournal;
  readonly #door: Entrance;
  readonly #watchers: Watchers;
  readonly #stop = new StopSource();
  readonly #proposer: Proposer;
  #past: Past | undefined;
  #birth: string | undefined;
  /** Why it takes no part, if it does not. */
  #unfit: string | undefined = "this voter is starting";
  /** Why it never will in this process. */
  #twin: string | undefined;
  #joining: Promise<void> | undefined;

  constructor(options: NodeOptions) {
    this.#options = options;
    const { clock, self, peering, log, disk } = options;
    this.#watchers = new Watchers(clock);
    this.#journal = new DiskJournal(disk, (error) => {
      this.#unfit = describe(error);
      log(`voter "${self}": ${this.#unfit}`);
    });
    peering.own.lives?.onTwin(() => {
      if (this.#twin === undefined) log(`voter "${self}": ${(this.#twin = twinsOf(self))}`);
    });
    this.#door = options.door ?? this.#openDoor();
    const acceptors = {
      names: peering.names,
      ask: async (voter: string, request: RegisterRequest, limitMs: number) => {
        const answer = await (voter === self ? this.handle(request) : peering.ask(voter, request, limitMs));
        if (answer.kind !== "register")
          throw new ConclaveError("unavailable", `voter "${voter}" answered something else`);
        return answer;
      },
    };
    this.#proposer = new Proposer({
      acceptors,
      self,
      clock,
      seed: () => this.#past?.start.seed ?? 0n,
      limitMs: LIMIT_MS,
    });
  }

  #openDoor(): Door {
    const { peering, clock, log, self } = this.#options;
    return new Door({
      own: peering.own,
      voters: new Set(peering.names),
      clock,
      log: (line) => log(`voter "${self}": ${line}`),
      handle: (body, gone) => {
        const request = decodeRequest(body);
        return request === undefined ? undefined : this.handle(request, gone).then(encode);
      },
    });
  }

  /** Listens first: whoever has the address has the journal. Resolves before the voter takes part. */
  async start(): Promise<void> {
    const { self, peering, clock, bind } = this.#options;
    await this.#door.listen(bind);
    try {
      const records = await this.#journal.load();
      const birth = records.find((record) => record.kind === "birth");
      if (birth !== undefined) assertOwn(birth, self, peering.own);
      this.#birth = birth?.id ?? clock.uniqueId() + clock.uniqueId();
      if (birth === undefined)
        await this.#journal.append({ kind: "birth", cluster: peering.own.cluster, self, id: this.#birth });
      const start = records.findLast((record) => record.kind === "start");
      if (start !== undefined)
        this.#begin(
          start,
          lastVotes(records),
          records.filter((r) => r.kind === "register"),
        );
      else this.#joining = this.#join(this.#birth);
    } catch (error) {
      this.#unfit = describe(error);
      if (error instanceof ConclaveError && error.code === "conflict")
        this.#options.log(`voter "${self}": ${this.#unfit}`);
      await this.close();
      throw error;
    }
  }

  /** Whether it takes part; if not, why. */
  get unfit(): string | undefined {
    return this.#twin ?? this.#unfit;
  }

  elections(): string[] {
    return this.#past?.voter.elections() ?? [];
  }

  /** `gone`: whoever asked does not wait any more. */
  async handle(request: Request, gone: Stop = NEVER): Promise<Answer> {
    if (this.#stop.aborted) throw new ConclaveError("state", "this voter is closed");
    const answer = await this.#decide(request, gone);
    // What it tells must not be forgotten: it waits for all records so far, and for a look that no other process has the journal.
    if (!this.#journal.quiet) await this.#journal.settled().catch(() => {});
    if (request.kind !== "state") await this.#journal.stillOwn().catch(() => {});
    return this.unfit === undefined || request.kind === "state" ? answer : unfitAnswer(request, this.unfit);
  }

  async close(): Promise<void> {
    if (this.#stop.aborted) return;
    this.#stop.stop(new ConclaveError("state", "this voter is closed"));
    this.#watchers.close();
    await this.#door.close();
    await this.#joining;
    await this.#journal.close().catch(() => {});
  }

  async #decide(request: Request, gone: Stop): Promise<Answer> {
    if (request.kind === "state") return this.#state(request);
    const past = this.#past;
    if (past === undefined || this.unfit !== undefined) return unfitAnswer(request, this.unfit ?? "starting");
    const now = { now: this.#options.clock.now(), wall: this.#options.clock.wall() };
    switch (request.kind) {
      case "prevote":
        return past.voter.prevote(request, now);
      case "vote":
      case "beat": {
        const { answer, persist } =
          request.kind === "vote" ? past.voter.vote(request, now) : past.voter.beat(request, now);
        if (persist !== undefined) this.#persist({ kind: "vote", ...persist });
        return answer;
      }
      case "release":
        return past.voter.release(request, now);
      case "who":
        return this.#who(past.voter, request, gone);
      case "prepare":
      case "accept":
      case "query": {
        const { answer, persist } = past.acceptor.handle(request, now.wall);
        if (persist !== undefined) this.#persist(persist);
        return answer;
      }
      case "read":
      case "write":
        return this.#propose(request);
    }
  }

  /** The answer waits for `settled`; a failure is told by the journal itself. */
  #persist(record: JournalRecord): void {
    this.#journal.append(record).catch(() => {});
  }

  async #who(voter: Voter, { election, change, waitMs }: WhoRequest, gone: Stop): Promise<ElectionAnswer> {
    const at = (): { now: number; wall: number } => ({ now: this.#options.clock.now(), wall: 0 });
    const answer = voter.who(election, at());
    if (answer.change !== change || waitMs === 0) return answer;
    await this.#watchers.wait(election, waitMs, gone);
    return voter.who(election, at());
  }

  async #propose(request: NodeRequest): Promise<Answer> {
    const { clock } = this.#options;
    try {
      const entry = await bounded(clock, 2 * LIMIT_MS, this.#stop, "the record", (signal) =>
        request.kind === "write"
          ? this.#proposer.write(request.key, request.expected, request.text, signal)
          : this.#proposer.read(request.kind === "read" ? request.key : "", signal),
      );
      return {
        kind: "entry",
        entry: entry === null ? null : { version: entry.version, base: entry.base, text: entry.text },
      };
    } catch (error) {
      return { kind: "entry", entry: null, unknown: describe(error) };
    }
  }

  #begin(start: StartRecord, votes: Beginning["votes"], registers: Beginning["registers"]): void {
    const { clock } = this.#options;
    const { floor, seed } = start;
    const voter = new Voter({ records: votes, floor, seed, startedAt: clock.now() }, (election) =>
      this.#watchers.wake(election),
    );
    const birth = this.#birth!;
    const past = { birth, voter, acceptor: new Acceptor(registers, seed), start };
    this.#past = past;
    this.#unfit = undefined;
    this.#journal.compactFrom(() => this.#snapshot(past));
  }

  #snapshot({ birth, voter, acceptor, start }: Past): JournalRecord[] {
    const { cluster } = this.#options.peering.own;
    const votes = voter.records().map((record) => ({ kind: "vote", ...record }) as const);
    return [
      { kind: "birth", cluster, self: this.#options.self, id: birth },
      start,
      ...votes,
      ...acceptor.records(),
    ];
  }

  async #join(birth: string): Promise<void> {
    const { peering, self, clock, log } = this.#options;
    const others = peering.names.filter((name) => name !== self);
    const waiting = new Waiting({ self, others, clock, log }, (name) => askState(peering, name, LIMIT_MS));
    for (let tries = 0; !this.#stop.aborted; tries++) {
      try {
        const told = await waiting.askAll();
        const found = beginning(birth, clock.wall(), told);
        if (found === undefined)
          throw new Error(
            `some voters have a past and ${told.filter(({ started }) => !started).length + 1} have none`,
          );
        await this.#record(found);
        return;
      } catch (error) {
        if (this.#stop.aborted) return;
        this.#unfit = waiting.because(error);
        const delay = Math.min(LONGEST_JOIN_AGAIN_MS, JOIN_AGAIN_MS * 2 ** Math.min(tries, 5));
        await sleep(clock, delay * (0.5 + 0.5 * clock.random()), this.#stop);
      }
    }
  }

  /** The start comes last: a voter that crashes before it asks again. */
  async #record({ start, votes, registers }: Beginning): Promise<void> {
    for (const vote of votes) this.#persist({ kind: "vote", ...vote });
    for (const register of registers) this.#persist(register);
    await this.#journal.append(start);
    this.#begin(start, votes, registers);
  }

  #state(request: StateRequest): StateAnswer {
    const past = this.#past;
    const begins = past === undefined && this.#birth !== undefined && this.#twin === undefined;
    return statePage(request, {
      birth: this.#birth ?? "",
      past,
      wall: this.#options.clock.wall(),
      unfit: begins ? undefined : this.unfit,
    });
  }
}
