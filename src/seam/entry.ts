/**
 * How a URL opens a backend, and what a program can say about the backend before
 * it is loaded. Commands are made from this: they name no store themselves.
 */
import type { Backend, Guarantees, TimingDefaults } from "./backend.js";

/** What a URL cannot say. A backend that has no use for it ignores it. */
export interface OpenOptions {
  /**
   * Processes that act on behalf of this one, asked at every write. A backend that
   * succeeds dead processes without waiting (file) waits for these to be dead too.
   */
  readonly processes?: (() => readonly number[]) | undefined;
  /**
   * Gives leaderships back as soon as this process has died for any reason,
   * instead of when their leases run out: a helper process waits for that.
   * `"resident"`: the helper is a Node process that is there already (45 MB)
   * instead of a shell that starts one (0.4 MB), which saves some 0.1 s. Default
   * `false`: processes that this one has started may act for it, and the library
   * does not know of them. List them in {@link processes}, or hand them
   * `lastWill.stdio`.
   */
  readonly lastWill?: boolean | "resident" | undefined;
  /** Modules that register the backend of this URL, as URLs: the helper of the last will loads them too. */
  readonly imports?: readonly string[] | undefined;
  /** Opened to release for another process only: a backend that itself takes part in a store (raft) does not. */
  readonly visitor?: boolean | undefined;
  /** Told what a backend does that is worth watching, in plain lines (Bully: every message of an election). */
  readonly log?: ((line: string) => void) | undefined;
}

/** A flag of the command line: `--name <argument>`. */
export interface StoreFlag {
  readonly name: string;
  readonly argument: string;
  readonly help: string;
}

/** Flags in the words that a store's users know from other tools. */
export interface StoreFlags {
  /** Say where elections live, instead of a URL. */
  readonly where: readonly StoreFlag[];
  /** Names the election, as users of this store call it. Given alone it says where, too. */
  readonly election?: StoreFlag;
  /** The URL that these flags mean. Throws an `invalid` error for what cannot be meant. */
  url(values: Readonly<Record<string, string | undefined>>): string;
}

/** A command of its own: `conclave <store> <name>`. It prints what it is asked for; it opens no election. */
export interface StoreCommand {
  readonly name: string;
  readonly help: string;
  readonly flags: readonly StoreFlag[];
  /** What to print. Throws an `invalid` error for what cannot be meant. */
  text(values: Readonly<Record<string, string | undefined>>): Promise<string>;
}

export interface BackendEntry {
  readonly name: string;
  /** As people write it. */
  readonly title: string;
  /** Schemes of its URLs, without the colon. */
  readonly schemes: readonly string[];
  /** A URL, shown in help and error messages. No credentials in it. */
  readonly example: string;
  /** Environment variables with credentials. Commands that are run while leading do not get them. */
  readonly secrets?: readonly string[];
  /** Where it differs from the defaults of an election. */
  readonly timing?: TimingDefaults;
  /** What it keeps is lost with the process: there is nothing to give back after its death. */
  readonly ephemeral?: boolean;
  readonly flags?: StoreFlags;
  readonly commands?: readonly StoreCommand[];
  open(url: URL, options: OpenOptions): Promise<Backend>;
  /** For URLs that Node's URL cannot hold (several hosts with ports): given the text as it is, instead of {@link open}. */
  openText?(url: string, options: OpenOptions): Promise<Backend>;
  /** The same URL with absolute paths in it: it is written into the last will, which may be read in another directory. Default: as it is. */
  absolute?(url: string): string;
  /** What its backends declare, for the table in the docs. */
  guarantees(): Promise<Guarantees>;
  /** Where elections of this URL live, for people. Default: the URL without user, password and parameters. */
  where?(url: URL): Promise<string>;
}
