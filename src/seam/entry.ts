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
  readonly flags?: StoreFlags;
  readonly commands?: readonly StoreCommand[];
  open(url: URL, options: OpenOptions): Promise<Backend>;
  /** For URLs that Node's URL cannot hold (several hosts with ports): given the text as it is, instead of {@link open}. */
  openText?(url: string, options: OpenOptions): Promise<Backend>;
  /** What its backends declare, for the table in the docs. */
  guarantees(): Promise<Guarantees>;
  /** Where elections of this URL live, for people. Default: the URL without user, password and parameters. */
  where?(url: URL): Promise<string>;
}
