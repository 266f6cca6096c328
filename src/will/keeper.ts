/**
 * What this process leaves behind: one will file and one helper for all its
 * backends. The file names what the process holds; it is written before a term
 * begins and after one was given back. Renewals do not touch it: the token says
 * which term is meant, so that an entry that is too old harms nobody.
 */
import { join } from "node:path";
import { systemClock } from "../kit/clock.js";
import { describe } from "../kit/errors.js";
import type { Claim } from "../seam/backend.js";
import { openWillDirectory, removeWill, writeWill } from "./file.js";
import { Helper, type HelperKind } from "./helper.js";
import { here, listed } from "./processes.js";

/** A backend that takes part. */
export interface Testator {
  readonly url: string;
  readonly imports: readonly string[];
  /** Processes that act on behalf of this one. */
  readonly processes: () => readonly number[];
  readonly claims: Map<string, Claim>;
  warn(message: string): void;
}

/** What is known of the helper of this process. */
export interface LastWillStatus {
  /** The helper's pid; `undefined`: none lives at the moment, and a death now would be noticed by the ttl alone. */
  readonly helper: number | undefined;
  /** How many helpers have died before their time. */
  readonly lost: number;
  /** How many leaderships would be given back. */
  readonly claims: number;
}

export class Keeper {
  readonly #testators = new Set<Testator>();
  #kind: HelperKind = "lazy";
  #path: Promise<string> | undefined;
  #helper: Helper | undefined;
  /** Died under earlier backends of this process. */
  #lostBefore = 0;
  #writing: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** The pipe was given to processes that only it can tell of. */
  #handedOut = false;
  #doubt: string | null = null;

  get status(): LastWillStatus {
    let claims = 0;
    for (const testator of this.#testators) claims += testator.claims.size;
    return { helper: this.#helper?.pid, lost: this.#lostBefore + (this.#helper?.lost ?? 0), claims };
  }

  /** See {@link LastWill.stdio}. */
  handOut(): NonNullable<Helper["pipe"]> | "ignore" {
    const pipe = this.#helper?.pipe;
    if (pipe === undefined) {
      // What is started now cannot be waited for.
      this.#distrust("a process was started while there was no helper to wait for it");
      return "ignore";
    }
    this.#handedOut = true;
    return pipe;
  }

  /** The same for a process that is listed by its pid: should the helper be replaced, that is enough. */
  get pipe(): Helper["pipe"] {
    return this.#helper?.pipe;
  }

  async join(testator: Testator, kind: HelperKind): Promise<void> {
    this.#testators.add(testator);
    if (kind === "resident") this.#kind = kind;
    if (this.#helper !== undefined) return;
    try {
      const path = await this.#file();
      this.#helper ??= new Helper(this.#kind, path, {
        lost: (why) => this.#helperLost(why),
        started: () => {},
      });
    } catch (error) {
      testator.warn(`the last will cannot be kept, a death is noticed by the ttl alone: ${describe(error)}`);
    }
  }

  /** After this resolves the file says what the testators hold now. Never rejects. */
  async write(): Promise<void> {
    if (this.#helper === undefined) return;
    // What is being written may not have our change; whatever is written next has it.
    this.#next ??= (this.#writing ?? Promise.resolve()).then(() => {
      this.#next = undefined;
      this.#writing = this.#write();
      return this.#writing;
    });
    await this.#next;
  }

  async leave(testator: Testator): Promise<void> {
    this.#testators.delete(testator);
    await this.write();
    if (this.#testators.size > 0 || this.#helper === undefined) return;
    const helper = this.#helper;
    this.#lostBefore += helper.lost;
    this.#helper = undefined;
    const path = await this.#file();
    this.#path = undefined;
    helper.close();
    await removeWill(path).catch(() => {});
  }

  async #write(): Promise<void> {
    const pids = new Set([process.pid]);
    for (const { processes } of this.#testators) for (const pid of processes()) pids.add(pid);
    const bequests = [...this.#testators].map(({ url, imports, claims }) => ({
      ...{ url, imports },
      claims: [...claims.values()],
    }));
    try {
      const processes = [...pids].map(listed);
      await writeWill(await this.#file(), { place: here(), processes, doubt: this.#doubt, bequests });
    } catch (error) {
      const why = `the last will could not be written, a death may be noticed by the ttl alone: ${describe(error)}`;
      for (const testator of this.#testators) testator.warn(why);
    }
  }

  #file(): Promise<string> {
    const name = `${process.pid}-${systemClock.uniqueId()}.json`;
    this.#path ??= openWillDirectory().then((directory) => join(directory, name));
    return this.#path;
  }

  #helperLost(why: string): void {
    for (const testator of this.#testators)
      testator.warn(`the helper of the last will was lost (${why}); another one is started`);
    // Those who hold the old pipe do not hold the new one: its end would not tell of them.
    if (this.#handedOut)
      this.#distrust("processes hold the pipe of an earlier helper; whether they live is not known");
  }

  #distrust(why: string): void {
    this.#doubt = why;
    void this.write();
  }
}

/** One a process, also if the library is loaded twice. */
const KEY = Symbol.for("conclave.last-will");

export function keeper(): Keeper {
  const known: unknown = Reflect.get(globalThis, KEY);
  if (known !== undefined) return known as Keeper;
  const made = new Keeper();
  Reflect.set(globalThis, KEY, made);
  return made;
}
