/**
 * Backends that others brought. They are kept for the whole process, not for
 * this copy of the library: a program and its command line may each have
 * installed one, and mean the same schemes.
 */
import type { Backend } from "../seam/backend.js";
import { invalid } from "../kit/errors.js";

/** What a URL cannot say. A backend that has no use for it ignores it. */
export interface OpenOptions {
  /**
   * Processes that act on behalf of this one, asked at every write. A backend that
   * succeeds dead processes without waiting (file) waits for these to be dead too.
   */
  readonly processes?: (() => readonly number[]) | undefined;
}

/** Opens a backend for a URL of its scheme. The caller closes what was opened. */
export type BackendOpener = (url: URL, options: OpenOptions) => Backend | Promise<Backend>;

/** What is shown of a registered scheme. */
export interface RegisterOptions {
  /** A URL of this scheme, for help and error messages. No credentials in it. Default `scheme://…`. */
  readonly example?: string;
}

interface Registered {
  readonly open: BackendOpener;
  readonly example: string;
}

const KEY = Symbol.for("conclave.backends");

function all(): Map<string, Registered> {
  const known: unknown = Reflect.get(globalThis, KEY);
  if (known instanceof Map) return known as Map<string, Registered>;
  const made = new Map<string, Registered>();
  Reflect.set(globalThis, KEY, made);
  return made;
}

export function registeredOpener(scheme: string): BackendOpener | undefined {
  return all().get(scheme)?.open;
}

export function registeredExamples(): string[] {
  return [...all().values()].map(({ example }) => example);
}

export function register(scheme: string, open: BackendOpener, example = `${scheme}://…`): () => void {
  if (!/^[a-z][a-z0-9+.-]*$/.test(scheme))
    throw invalid(
      `"${scheme}" is no URL scheme: write lower-case letters, digits, "+", "." and "-", without the colon`,
    );
  const known = all().get(scheme);
  if (known !== undefined && known.open !== open)
    throw invalid(`a backend for "${scheme}:" URLs is registered already; choose another scheme`);
  const registered = { open, example };
  all().set(scheme, registered);
  return () => {
    if (all().get(scheme) === registered) all().delete(scheme);
  };
}
