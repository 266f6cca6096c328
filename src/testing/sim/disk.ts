/**
 * A file system behind the file root's narrow door, with what a real one does
 * and a fake one forgets: a directory is not listed in one instant, a call may
 * take effect long after it was made, and after a loss of power only what was
 * made durable is certain to be there.
 */
import type { FileRead, FileSystem } from "../../backends/file/fs.js";
import { onAbort } from "../../kit/wait.js";
import { errno } from "./disk-calls.js";
import type { DiskCalls } from "./disk-calls.js";
import type { StoreHost } from "./network.js";
import { hash32 } from "./random.js";
import type { Random } from "./random.js";

interface Inode {
  data: Uint8Array;
  durable: boolean;
  /** Another for every content. */
  mark: string;
  /** What is on the disk instead, where the content is not: nothing, or what was written over. */
  before: Uint8Array;
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
  #marks = 0;

  constructor(
    readonly host: StoreHost,
    readonly random: Random,
  ) {}

  connect(calls: DiskCalls): FileSystem {
    return {
      list: (directory) => this.#list(calls, directory),
      assertDirectory: (path) => calls.make("stat", () => void this.#directory(path)),
      read: (path, limitBytes) => this.#read(calls, path, limitBytes),
      mark: (path) => calls.make("stat", () => this.#find(path)?.mark ?? null),
      create: (path, data, durable) => calls.make("create", () => this.#create(path, data, durable)),
      rewrite: (path, data, durable) => this.#rewrite(calls, path, data, durable),
      link: (from, to) => calls.make("link", () => this.#link(from, to)),
      rename: (from, to) => calls.make("rename", () => this.#rename(from, to)),
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
        else if (!inode.durable && this.random.chance(0.5)) inode.data = inode.before;
      }
      for (const [name, inode] of durable)
        if (!names.has(name) && this.random.chance(0.5)) names.set(name, inode);
      directory.durable = new Map(names);
    }
  }

  /** All directories below this one as they are. The result brings them back, and removes what came since. */
  backUp(below: string): () => void {
    // Contents too: a file may be written over afterwards.
    const saved = [...this.#directories]
      .filter(([path]) => path.startsWith(below))
      .map(
        ([path, { names }]) => [path, [...names].map(([name, { data }]) => [name, data] as const)] as const,
      );
    return () => {
      this.wipe(below);
      for (const [path] of saved) this.#makeDirectory(path);
      for (const [path, files] of saved) {
        for (const [name, data] of files) this.#create(`${path}/${name}`, data, true);
        const directory = this.#directory(path);
        directory.durable = new Map(directory.names);
      }
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
    this.#create(path, data, true);
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

  /** Opened, and then read: whoever writes over it in between is read. */
  #read(calls: DiskCalls, path: string, limitBytes: number): Promise<FileRead | null> {
    let inode: Inode | undefined;
    const open = (): void => void (inode = this.#find(path));
    const read = (): FileRead | null =>
      inode === undefined ? null : { data: inode.data.slice(0, limitBytes), mark: inode.mark };
    return calls.make("read", read, [open]);
  }

  #create(path: string, data: Uint8Array, durable: boolean): string {
    const [directory, name] = split(path);
    const { names } = this.#directory(directory);
    if (names.has(name)) throw errno("EEXIST", path);
    const inode = { data, durable, mark: `${++this.#marks}`, before: new Uint8Array() };
    names.set(name, inode);
    this.#tell(directory, name);
    return inode.mark;
  }

  /** In two steps: in between there is half of both. */
  #rewrite(calls: DiskCalls, path: string, data: Uint8Array, durable: boolean): Promise<string | null> {
    let inode: Inode | undefined;
    const half = (): void => {
      inode = this.#find(path);
      if (inode === undefined || this.#links(inode) !== 1 || inode.data.length > data.length)
        inode = undefined;
      else {
        const before = inode.durable ? inode.data : inode.before;
        const middle = data.length >> 1;
        const torn = Buffer.concat([data.subarray(0, middle), inode.data.subarray(middle)]);
        Object.assign(inode, { data: torn, durable: false, mark: `${++this.#marks}`, before });
      }
    };
    const rest = (): string | null => (inode ? Object.assign(inode, { data, durable }).mark : null);
    return calls.make("write", rest, [half]);
  }

  #links(inode: Inode): number {
    let links = 0;
    for (const { names } of this.#directories.values())
      for (const other of names.values()) if (other === inode) links++;
    return links;
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

  #rename(from: string, to: string): boolean {
    const inode = this.#find(from);
    if (inode === undefined) return false;
    const [directory, name] = split(to);
    const { names } = this.#directory(directory);
    if (names.get(name) === inode) return true; // two names of one file: nothing happens
    names.set(name, inode);
    this.#remove(from);
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

function split(path: string): [directory: string, name: string] {
  const at = path.lastIndexOf("/");
  return at < 0 ? ["", path] : [path.slice(0, at), path.slice(at + 1)];
}
