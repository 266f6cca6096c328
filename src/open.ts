/** A URL opens a backend, and with it an election. */
import type { ElectionOptions } from "./api/options.js";
import { ownLeaderEach, separateReplicas } from "./backends/default-store.js";
import { examples, ownBackend, registeredOpener } from "./backends/registry.js";
import { both } from "./both/index.js";
import { BOTH_SCHEME, bothUrl, bothUrls } from "./both/url.js";
import { Election } from "./election/election.js";
import { checkElectionOptions, ELECTION_OPTIONS } from "./election/known-options.js";
import { invalid } from "./kit/errors.js";
import { withLastWill } from "./will/backend.js";
import { showUrl } from "./kit/urls.js";
import { rememberWhere } from "./kit/where.js";
import { Lock } from "./lock/lock.js";
import type { Backend } from "./seam/backend.js";
import type { OpenOptions } from "./seam/entry.js";

/**
 * Opens the backend a URL names. Without one: files in the user's own directory,
 * which only processes of this machine share. Where other replicas would not see
 * them (a container, a pod), that is said as a warning of the process; write
 * `"file:"` if one machine is meant.
 */
export async function openBackend(url?: string | URL, options: OpenOptions = {}): Promise<Backend> {
  return openNamed(url, options, (message) => {
    process.emitWarning(message, { type: "ConclaveWarning", code: "CONCLAVE_ONE_MACHINE" });
  });
}

async function openNamed(
  url: string | URL | undefined,
  options: OpenOptions,
  warn: (message: string) => void,
): Promise<Backend> {
  if (typeof url === "string" && url.trim() === "")
    throw invalid(`backend is empty: is the variable set? Write one of ${examples()}`);
  const named = url ?? "file:";
  const backend = await willed(await openUrl(named, options), named, options);
  const entry = ownBackend(schemeOf(named));
  const where = entry?.where === undefined ? showUrl(String(named)) : await entry.where(parse(named));
  rememberWhere(backend, where, url === undefined);
  const sign = url === undefined ? separateReplicas() : undefined;
  if (sign !== undefined)
    warnOnce(
      `${ownLeaderEach(sign)}. Name a store that all replicas reach (backend: "etcd://…", "postgres://…", …), ` +
        'or write backend: "file:" if one machine is meant',
      warn,
    );
  return backend;
}

/** The same backend, or one whose terms another process gives back if this one dies. */
async function willed(backend: Backend, url: string | URL, options: OpenOptions): Promise<Backend> {
  const { lastWill, imports, processes } = options;
  if (lastWill === undefined || lastWill === false || ownBackend(schemeOf(url))?.ephemeral === true)
    return backend;
  const kind = lastWill === "resident" ? "resident" : "lazy";
  return withLastWill(backend, { url: absolute(String(url)), imports, processes, kind });
}

/** What names files means the same ones in every directory. */
function absolute(url: string): string {
  if (schemeOf(url) === BOTH_SCHEME) return bothUrl(bothUrls(url).map(absolute));
  return ownBackend(schemeOf(url))?.absolute?.(url) ?? url;
}

const warned = new Set<string>();

/** Once in a process: it is about where the program runs, not about one election. */
function warnOnce(message: string, warn: (message: string) => void): void {
  if (warned.has(message)) return;
  warned.add(message);
  warn(message);
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
  if (scheme === "http" || scheme === "https")
    throw invalid(
      `no backend for "${scheme}:" URLs: the scheme says which store it is. For etcd write etcd://host:2379 ` +
        `(with TLS etcds://), for Consul consul://host:8500; all there are: ${examples()}`,
    );
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
  /**
   * A backend, or the URL of one. Default: files in the user's own directory, which
   * only processes of this machine share; in a container or a pod that is warned of.
   */
  readonly backend?: Backend | string | URL | undefined;
}

/** An election on a URL. A backend that was opened here is closed with the election. */
export async function openElection(options: OpenElectionOptions): Promise<Election> {
  return openOn("openElection()", options, (rest) => new Election(rest));
}

/** What {@link openLock} takes. */
export type OpenLockOptions = Omit<OpenElectionOptions, "ready" | "maxTermMs">;

/** A lock on a URL. A backend that was opened here is closed with the lock. */
export async function openLock(options: OpenLockOptions): Promise<Lock> {
  return openOn("openLock()", options, (rest) => new Lock(rest));
}

async function openOn<T>(
  what: string,
  options: OpenElectionOptions,
  make: (options: ElectionOptions) => T,
): Promise<T> {
  checkElectionOptions(what, options, {
    ...ELECTION_OPTIONS,
    ...{ processes: true, lastWill: true, imports: true, visitor: true, log: true },
  });
  const { backend, processes, lastWill, imports, visitor, log, ...rest } = options;
  if (typeof backend === "object" && !(backend instanceof URL)) {
    if (lastWill !== undefined && lastWill !== false)
      throw invalid(
        "lastWill needs a URL, by which another process opens the store: pass one, or a backend from openBackend(url, { lastWill: true })",
      );
    return make({ ...rest, backend });
  }
  const { logger } = rest;
  const open = { processes, lastWill, imports, visitor, log };
  const opened =
    logger === undefined
      ? await openBackend(backend, open)
      : await openNamed(backend, open, (message) => logger.warn(message));
  try {
    return make({ ...rest, backend: opened, closeBackend: true });
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
