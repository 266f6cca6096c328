/**
 * A file system behind the file root's narrow door, with what a real one does
 * and a fake one forgets: a directory is not listed in one instant, a call may
 * take effect long after it was made, and after a loss of power only what was
 * made durable is certain to be there.
 */
import type { FileSystem } from "../../backends/file/fs.js";
import { onAbort } from "../../kit/wait.js";
import type { StoreHost, Trouble } from "./network.js";
import type { SimProcess } from "./node.js";
import type { Plan } from "./plan.js";
import { hash32 } from "./random.js";
import type { Random } from "./random.js";

interface Inode {
  data: Uint8Array;
  durable: boolean;
}

interface Directory {
  readonly names: Map<string, Inode>;
  /** What would be found after a loss of power. */
  durable: Map<string, Inode>;
}

interface Watcher {
  readonly directory: string;
  readonly calls: DiskCalls;
  wake(name: string): void;
}

export class Disk {
  /** Told of every new name that stands for what was there under another, and of all names beside it. */
  onLink: ((path: string, data: Uint8Array, names: string[]) => void) | undefined;
  readonly #directories = new Map<string, Directory>();
  readonly #watchers = new Set<Watcher>();

  constructor(
    readonly host: StoreHost,
    readonly random: Random,
  ) {}

  connect(calls: DiskCalls): FileSystem {
    return {
      list: (directory) => this.#list(calls, directory),
      read: (path, limitBytes) =>
        calls.make("read", () => this.#find(path)?.data.slice(0, limitBytes) ?? null),
      create: (path, data, durable) => calls.make("create", () => this.#create(path, { data, durable })),
      link: (from, to) => calls.make("link", () => this.#link(from, to)),
      syncDirectory: (path) =>
        calls.make("sync", () => {
          const directory = this.#directory(path);
          directory.durable = new Map(directory.names);
        }),
      remove: (path) => calls.make("remove", () => this.#remove(path)),
      makeDirectory: (path) => calls.make("mkdir", () => this.#makeDirectory(path)),
      watch: (directory, wake, signal) => this.#watch(calls, directory, wake, signal),
    };
  }

  /** What was not made durable is there or not, each name and each content for itself. */
  losePower(): void {
    for (const directory of this.#directories.values()) {
      const { names, durable } = directory;
      for (const [name, inode] of names) {
        if (durable.get(name) !== inode && this.random.chance(0.5)) names.delete(name);
        else if (!inode.durable && this.random.chance(0.5)) inode.data = new Uint8Array();
      }
      for (const [name, inode] of durable)
        if (!names.has(name) && this.random.chance(0.5)) names.set(name, inode);
      directory.durable = new Map(names);
    }
  }

  /** All directories below this one as they are. The result brings them back, and removes what came since. */
  backUp(below: string): () => void {
    const saved = [...this.#directories]
      .filter(([path]) => path.startsWith(below))
      .map(([path, { names }]) => [path, new Map(names)] as const);
    return () => {
      this.wipe(below);
      for (const [path, names] of saved)
        this.#directories.set(path, { names: new Map(names), durable: new Map(names) });
      for (const [path] of saved) this.#tell(path, "");
    };
  }

  /** Removes all directories below this one. */
  wipe(below: string): void {
    for (const path of [...this.#directories.keys()])
      if (path.startsWith(below)) this.#directories.delete(path);
  }

  /** The names in a directory, as no process sees them: all at one instant. */
  names(path: string): readonly string[] {
    return [...(this.#directories.get(path)?.names.keys() ?? [])];
  }

  content(path: string): Uint8Array | undefined {
    return this.#find(path)?.data;
  }

  /** Somebody who may write to the directory puts a file there. */
  plant(path: string, data: Uint8Array): void {
    this.#create(path, { data, durable: true });
  }

  /**
   * Names lie in an order of their own (as in a hashed directory), and a reader
   * passes over it in steps. What is created behind it or removed before it gets
   * there is not listed.
   */
  #list(calls: DiskCalls, path: string): Promise<string[]> {
    const steps = calls.steps();
    const found: string[] = [];
    const pass = (step: number) => (): void => {
      for (const name of this.#directory(path).names.keys()) {
        if (Math.floor((hash32(name) / 0x1_0000_0000) * steps) === step) found.push(name);
      }
    };
    const passes = Array.from({ length: steps }, (_, step) => pass(step));
    return calls.make("list", () => found, passes);
  }

  #directory(path: string): Directory {
    const directory = this.#directories.get(path);
    if (directory === undefined) throw errno("ENOENT", path);
    return directory;
  }

  #find(path: string): Inode | undefined {
    const [directory, name] = split(path);
    return this.#directories.get(directory)?.names.get(name);
  }

  #create(path: string, inode: Inode): void {
    const [directory, name] = split(path);
    const { names } = this.#directory(directory);
    if (names.has(name)) throw errno("EEXIST", path);
    names.set(name, inode);
    this.#tell(directory, name);
  }

  #link(from: string, to: string): boolean {
    const inode = this.#find(from);
    if (inode === undefined) throw errno("ENOENT", from);
    const [directory, name] = split(to);
    const { names } = this.#directory(directory);
    if (names.has(name)) return false;
    names.set(name, inode);
    this.onLink?.(to, inode.data, [...names.keys()]);
    this.#tell(directory, name);
    return true;
  }

  #remove(path: string): void {
    const [directory, name] = split(path);
    if (this.#directories.get(directory)?.names.delete(name)) this.#tell(directory, name);
  }

  #makeDirectory(path: string): void {
    if (!this.#directories.has(path)) this.#directories.set(path, { names: new Map(), durable: new Map() });
    const [parent] = split(path);
    if (parent !== "") this.#makeDirectory(parent);
  }

  #watch(
    calls: DiskCalls,
    directory: string,
    wake: (name?: string) => void,
    signal: AbortSignal,
  ): Promise<void> {
    return new Promise((resolve) => {
      const watcher: Watcher = { directory, calls, wake: (name) => void (signal.aborted || wake(name)) };
      this.#watchers.add(watcher);
      onAbort(signal, () => {
        this.#watchers.delete(watcher);
        resolve();
      });
    });
  }

  #tell(directory: string, name: string): void {
    for (const watcher of [...this.#watchers]) {
      if (!watcher.calls.process.alive) this.#watchers.delete(watcher);
      else if (watcher.directory === directory) watcher.calls.notify(() => watcher.wake(name));
    }
  }
}

const TAIL = 0.25;
const TAIL_MAX_MS = 6_000;
const ERRORS = 0.3;

/** The system calls of one process. They cannot be called back, and nothing is lost; but they can be slow, and fail. */
export class DiskCalls {
  pending = 0;
  onCall: ((what: string) => void) | undefined;
  readonly #random: Random;

  constructor(
    readonly process: SimProcess,
    readonly host: StoreHost,
    readonly trouble: Trouble,
    readonly plan: Plan,
    purpose: string,
  ) {
    this.#random = process.stream(`disk/${purpose}`);
  }

  /** `before`: steps that take effect one after the other before `serve` does. */
  make<T>(what: string, serve: () => T, before: readonly (() => void)[] = []): Promise<T> {
    return new Promise((resolve, reject) => {
      this.pending++;
      this.onCall?.(what);
      const fails = this.#now < this.trouble.errors && this.#random.chance(ERRORS);
      const afterwards = this.#random.chance(0.5);
      const steps = [...before];
      const answer = (settle: () => void): void =>
        void this.host.scheduler.at(this.#now + this.#random.next(), () =>
          this.process.deliver(() => {
            this.pending--;
            settle();
          }),
        );
      const fail = (error: unknown): void =>
        answer(() => reject(error instanceof Error ? error : new Error(String(error))));
      const step = (): void => {
        try {
          if (fails && !afterwards) throw errno("EIO", what);
          const next = steps.shift();
          if (next !== undefined) {
            next();
            this.#later(step);
            return;
          }
          const value = serve();
          if (fails) throw errno("EIO", what);
          answer(() => resolve(value));
        } catch (error) {
          fail(error);
        }
      };
      this.#later(step);
    });
  }

  notify(run: () => void): void {
    const lost = this.#random.chance(0.02) && this.#now < this.plan.healAtMs;
    const late = this.#random.next() * 5;
    if (lost || this.#now < this.trouble.mute) return;
    this.host.scheduler.at(this.#now + late, () => this.process.deliver(run));
  }

  /** In how many steps a directory is read. */
  steps(): number {
    return this.#random.whole(1, 3);
  }

  get #now(): number {
    return this.host.scheduler.now;
  }

  /** When the call's thread gets on: after the disk, and only while the process runs. */
  #later(run: () => void): void {
    const { scheduler } = this.host;
    const base = this.#random.logNormal(0.15, 0.8);
    const tail = this.#random.next();
    const extra = this.#random.next();
    const longest = this.#random.next() < 0.5 ? this.plan.ttlMs / 2 : TAIL_MAX_MS;
    const slow =
      this.#now < this.trouble.delay || this.#now < this.trouble.loss ? TAIL : this.plan.latency.tail / 8;
    const healthy = this.#now >= this.plan.healAtMs;
    const drag = this.#now < this.host.slowUntil ? (extra * this.plan.ttlMs) / 10 : 0;
    const lags = this.plan.laggard === this.process.node.index && !healthy && tail > 0.8;
    const stuck = Math.max(this.trouble.requestsCut, this.trouble.answersCut, this.#now);
    const wait =
      !healthy && tail < slow
        ? extra * Math.min(longest, this.plan.healAtMs - this.#now)
        : lags
          ? extra * 0.2 * this.plan.ttlMs
          : 0;
    scheduler.quietly(this.host.startOf(stuck + base + drag + wait), () => this.process.whenRunning(run));
  }
}

function split(path: string): [directory: string, name: string] {
  const at = path.lastIndexOf("/");
  return at < 0 ? ["", path] : [path.slice(0, at), path.slice(at + 1)];
}

function errno(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
