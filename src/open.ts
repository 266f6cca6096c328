/** A URL opens a backend, and with it an election. */
import type { ElectionOptions } from "./api/options.js";
import { examples, ownBackend, registeredOpener } from "./backends/registry.js";
import { both } from "./both/index.js";
import { BOTH_SCHEME, bothUrls } from "./both/url.js";
import { Election } from "./election/election.js";
import { invalid } from "./kit/errors.js";
import { withLastWill } from "./will/backend.js";
import type { Backend } from "./seam/backend.js";
import type { OpenOptions } from "./seam/entry.js";

/** Opens the backend a URL names; without one, files in the user's own directory. */
export async function openBackend(url: string | URL = "file:", options: OpenOptions = {}): Promise<Backend> {
  const backend = await openUrl(url, options);
  const { lastWill, imports, processes } = options;
  if (lastWill === undefined || lastWill === false || ownBackend(schemeOf(url))?.ephemeral === true)
    return backend;
  const kind = lastWill === "resident" ? "resident" : "lazy";
  return withLastWill(backend, { url: String(url), imports, processes, kind });
}

async function openUrl(url: string | URL, options: OpenOptions): Promise<Backend> {
  const scheme = schemeOf(url);
  if (scheme === BOTH_SCHEME) return openBoth(url, options);
  const own = ownBackend(scheme);
  if (typeof url === "string" && own?.openText !== undefined) return own.openText(url, options);
  const parsed = parse(url);
  if (own !== undefined) return own.open(parsed, options);
  const open = registeredOpener(scheme);
  if (open !== undefined) return open(parsed, options);
  throw invalid(`no backend for "${scheme}:" URLs; use one of ${examples()}, or register your own`);
}

async function openBoth(url: string | URL, options: OpenOptions): Promise<Backend> {
  const [urlA, urlB] = bothUrls(url);
  const a = await openUrl(urlA, options);
  try {
    return both(a, await openUrl(urlB, options));
  } catch (error) {
    await a[Symbol.asyncDispose]();
    throw error;
  }
}

/** What {@link openElection} takes. */
export interface OpenElectionOptions extends Omit<ElectionOptions, "backend" | "closeBackend">, OpenOptions {
  /** A backend, or the URL of one; default: files in the user's own directory. */
  readonly backend?: Backend | string | URL | undefined;
}

/** An election on a URL. A backend that was opened here is closed with the election. */
export async function openElection(options: OpenElectionOptions): Promise<Election> {
  const { backend, processes, lastWill, imports, visitor, ...rest } = options;
  if (typeof backend === "object" && !(backend instanceof URL)) {
    if (lastWill !== undefined && lastWill !== false)
      throw invalid(
        "lastWill needs a URL, by which another process opens the store: pass one, or a backend from openBackend(url, { lastWill: true })",
      );
    return new Election({ ...rest, backend });
  }
  const opened = await openBackend(backend, { processes, lastWill, imports, visitor });
  try {
    return new Election({ ...rest, backend: opened, closeBackend: true });
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    throw error;
  }
}

/** Without the colon; empty if there is none. */
export function schemeOf(url: string | URL): string {
  if (url instanceof URL) return url.protocol.slice(0, -1);
  return /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase() ?? "";
}

function parse(url: string | URL): URL {
  if (url instanceof URL) return url;
  // Read by the URL rules this would be a path from the root; whoever writes it means another.
  if (/^file:(?!\/\/)./i.test(url))
    throw invalid("write file:///directory with the whole path, or just file:");
  try {
    return new URL(url);
  } catch {
    // The text is not repeated: it may hold a password.
    throw invalid(`the backend URL cannot be read; it looks like ${examples()}`);
  }
}
