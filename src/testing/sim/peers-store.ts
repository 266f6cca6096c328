/** Elections among peers: processes are voters, or clients of those that are. The real backend, voter, journal and registers. */
import { RaftBackend } from "../../backends/raft/backend.js";
import { RaftNode } from "../../backends/raft/node.js";
import type { SharedNode } from "../../backends/raft/shared-node.js";
import type { Answer, Request } from "../../backends/raft/transport/wire.js";
import { SimClock } from "./clock.js";
import type { Trouble } from "./network.js";
import type { SimProcess } from "./node.js";
import { PeerDisk } from "./peer-disk.js";
import { PeerLedger } from "./peer-ledger.js";
import { PeerNetwork, SimPeering } from "./peer-network.js";
import { Random } from "./random.js";
import { RegisterHistory } from "./register-history.js";
import { RegisterWork } from "./register-work.js";
import { closeBackend, ordinary } from "./store-parts.js";
import type { Connection, Store, StoreOptions } from "./store-parts.js";

const VOTERS = 3;
const MORE_VOTERS = 5;
/** How often a machine that starts again has a new disk. */
const WIPED = 0.3;
/** How often no disk survives that all machines lost power. */
const ALL_WIPED = 0.4;
/** How many plans have processes that use records besides. */
const REGISTERS = 0.7;

export function peersStore(options: StoreOptions): Store {
  const cluster = new Cluster(options);
  return {
    ...ordinary,
    holds: (token) => cluster.holds(token),
    losePower: () => cluster.losePower(),
    depose: (node, untilTime) => cluster.cutOneWay(node, untilTime),
    connect: (_, process, trouble, purpose) => cluster.connect(process, trouble, purpose),
  };
}

/** The backend of one process, which its elections share. */
interface Tenancy {
  readonly backend: RaftBackend;
  readonly clock: SimClock;
  readonly peering: SimPeering;
  readonly work: RegisterWork | undefined;
  users: number;
}

class Cluster {
  readonly #options: StoreOptions;
  readonly #random: Random;
  readonly #network: PeerNetwork;
  readonly #names: readonly string[];
  readonly #disks: ReadonlyMap<string, PeerDisk>;
  readonly #ledger: PeerLedger;
  readonly #history: RegisterHistory | undefined;
  readonly #tenancies = new Map<SimProcess, Tenancy>();
  /** Closing takes a moment, and the next one needs the same disk. */
  readonly #ending = new Map<SimProcess, Promise<void>>();
  readonly #nodes = new Map<string, { readonly process: SimProcess; readonly node: RaftNode }>();
  /** Processes whose disk has been looked at. */
  readonly #booted = new Set<SimProcess>();
  #serial = 0;

  constructor(options: StoreOptions) {
    this.#options = options;
    const { plan, host, monitor, wrote } = options;
    this.#random = new Random(plan.seed, "peers");
    this.#network = new PeerNetwork(host.scheduler, plan, new Random(plan.seed, "peers/network"));
    const count = plan.nodes >= MORE_VOTERS && this.#random.chance(0.5) ? MORE_VOTERS : VOTERS;
    this.#names = Array.from({ length: count }, (_, i) => `n${i + 1}`);
    this.#disks = new Map(
      this.#names.map((name) => [name, new PeerDisk(new Random(plan.seed, `disk/${name}`))]),
    );
    this.#history = this.#random.chance(REGISTERS) ? new RegisterHistory(monitor) : undefined;
    this.#ledger = new PeerLedger(monitor, count, plan.cron === null ? () => {} : wrote);
  }

  connect(process: SimProcess, trouble: Trouble, purpose: string): Connection {
    let tenancy = this.#tenancies.get(process);
    if (tenancy === undefined) {
      tenancy = this.#open(process, trouble, purpose);
      this.#tenancies.set(process, tenancy);
    }
    const { backend, peering } = tenancy;
    const here = tenancy;
    here.users++;
    const close = async (late: (what: string) => void): Promise<void> => {
      if (--here.users > 0) return;
      this.#tenancies.delete(process);
      await this.#close(here, process, late);
      if (process.alive) this.#stay(process, trouble, purpose);
    };
    return { backend, traffic: peering, close };
  }

  holds(token: bigint): boolean {
    return this.#ledger.holds(token);
  }

  /** All processes are about to be killed. Sometimes no disk survives; tokens rise all the same, unless clocks went back. */
  losePower(): void {
    const { plan, monitor } = this.#options;
    const lost = this.#random.chance(ALL_WIPED) && plan.cron === null;
    if (!lost || plan.faults.some(({ kind }) => kind === "jump")) return;
    monitor.note("all disks are lost");
    for (const name of this.#names) this.#wipe(name);
    this.#history?.begin();
  }

  /** One voter does not hear another one any more, and the other way round it does. */
  cutOneWay(node: string, untilTime: number): void {
    const others = this.#names.filter((name) => name !== node);
    const [first, ...rest] = others;
    if (first !== undefined) this.#network.cut(node, this.#random.pick([first, ...rest]), untilTime);
  }

  /** A process that has closed its election is still a voter: another part of the program uses it. */
  #stay(process: SimProcess, trouble: Trouble, purpose: string): void {
    const { plan, host, monitor } = this.#options;
    if (!this.#disks.has(process.node.id) || host.scheduler.now >= plan.horizonMs) return;
    if (this.#tenancies.has(process)) return;
    const tenancy = this.#open(process, trouble, `${purpose}/voter`);
    this.#tenancies.set(process, tenancy);
    tenancy.backend
      .start()
      .catch((error: unknown) => void (process.alive && monitor.violate("journal", String(error))));
  }

  #open(process: SimProcess, trouble: Trouble, purpose: string): Tenancy {
    const { plan } = this.#options;
    const self = process.node.id;
    const clock = new SimClock(process, `raft/${purpose}`);
    const peering = new SimPeering(this.#network, { trouble, process }, this.#names, clock);
    const voter = this.#disks.has(self);
    const backend = new RaftBackend(
      {
        peers: this.#names.map((name, i) => `${name}@127.0.0.1:${7_401 + i}`),
        ...(voter && { self, dir: `/${self}` }),
        insecure: true,
        clock,
      },
      {},
      { node: shared(() => this.#node(process, trouble, clock, peering)), peering: () => peering },
    );
    const name = `${process.label}/${++this.#serial}`;
    const random = process.stream(`registers/${purpose}`);
    const { records } = backend;
    const work =
      this.#history &&
      new RegisterWork({ records, history: this.#history, clock, random, name, pauseMs: plan.ttlMs / 2 });
    return { backend, clock, peering, work, users: 0 };
  }

  async #close(
    { backend, clock, peering, work }: Tenancy,
    process: SimProcess,
    late: (what: string) => void,
  ): Promise<void> {
    const closed = async (): Promise<void> => {
      await work?.close();
      await closeBackend(backend, peering, late);
    };
    const ending = closed();
    this.#ending.set(process, ending);
    await ending;
    this.#ending.delete(process);
    if (!process.alive) return;
    if (clock.pending > 0) late(`${clock.pending} timers of the backend are still set`);
    clock.retired = late;
  }

  /** This process becomes a voter. */
  async #node(
    process: SimProcess,
    trouble: Trouble,
    clock: SimClock,
    peering: SimPeering,
  ): Promise<SharedNode> {
    await this.#ending.get(process);
    const { plan, monitor } = this.#options;
    const self = process.node.id;
    const disk = this.#disks.get(self);
    if (disk === undefined) throw new Error(`${self} is no voter`);
    if (!this.#booted.has(process)) this.#boot(process);
    const ledger = this.#ledger;
    const node = new WatchedNode(
      {
        self,
        bind: { host: "sim", port: 0 },
        disk: disk.open(process, plan),
        peering,
        clock,
        log: (line) => monitor.note(line),
        door: {
          listen: async () => {
            const handle = (request: Request): Promise<Answer> => node.handle(request);
            this.#network.listeners.set(self, { trouble, process, handle });
          },
          close: async () => void this.#network.listeners.delete(self),
        },
      },
      {
        asked: (request, at) => ledger.asked(self, request, at),
        answered: (request, answer, at) => void (process.alive && ledger.answered(self, request, answer, at)),
        now: () => clock.now(),
      },
    );
    this.#nodes.set(self, { process, node });
    await node.start();
    return {
      node,
      peering,
      release: async () => {
        peering.close();
        await node.close();
      },
    };
  }

  /** A machine that starts again may have a new disk: one at a time, and not while another one is on its way back. */
  #boot(process: SimProcess): void {
    const { plan, host, monitor } = this.#options;
    this.#booted.add(process);
    const self = process.node.id;
    const { now } = host.scheduler;
    const wiped = this.#random.chance(WIPED) && now > plan.ttlMs && now < plan.healAtMs;
    const fit = (name: string): boolean => {
      const there = this.#nodes.get(name);
      return there?.process.alive === true && there.node.unfit === undefined;
    };
    if (!wiped || !this.#names.every((name) => name === self || fit(name))) return;
    monitor.note(`${self} has lost its disk`);
    this.#wipe(self);
  }

  #wipe(name: string): void {
    this.#disks.get(name)?.wipe();
    this.#ledger.lost(name);
  }
}

/** One voter, however many ask for it at once; the last one to go closes it. */
function shared(open: () => Promise<SharedNode>): () => Promise<SharedNode> {
  let opened: Promise<SharedNode> | undefined;
  let users = 0;
  return async () => {
    users++;
    opened ??= open();
    const { node, peering, release } = await opened;
    return { node, peering, release: async () => (--users === 0 ? release() : undefined) };
  };
}

interface Witness {
  now(): number;
  asked(request: Request, at: number): void;
  answered(request: Request, answer: Answer, at: number): void;
}

class WatchedNode extends RaftNode {
  readonly #witness: Witness;

  constructor(options: ConstructorParameters<typeof RaftNode>[0], witness: Witness) {
    super(options);
    this.#witness = witness;
  }

  override async handle(...[request, gone]: Parameters<RaftNode["handle"]>): Promise<Answer> {
    const at = this.#witness.now();
    this.#witness.asked(request, at);
    const answer = await super.handle(request, gone);
    this.#witness.answered(request, answer, at);
    return answer;
  }
}
