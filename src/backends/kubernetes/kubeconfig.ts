/**
 * Reads kubeconfig files as kubectl does: a list in KUBECONFIG is merged, the
 * first mention of a name wins, paths are relative to the file that names them.
 * Exec plugins, auth providers, impersonation and proxies are refused with the
 * way out: a `KubeConfig` object of the official client, handed in.
 */
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { ConclaveError, describe, invalid } from "../../kit/errors.js";
import type { Access, Credentials } from "./access.js";
import type { Environment } from "./incluster.js";

type Fields = Readonly<Record<string, unknown>>;

/** A named entry and the directory its relative paths count from. */
interface Named {
  readonly fields: Fields;
  readonly directory: string;
}

interface Merged {
  readonly currentContext: string | undefined;
  readonly clusters: ReadonlyMap<string, Named>;
  readonly contexts: ReadonlyMap<string, Named>;
  readonly users: ReadonlyMap<string, Named>;
}

export interface KubeconfigOptions {
  /** One path, or a list in the manner of KUBECONFIG. */
  readonly path: string;
  /** Instead of the current context. */
  readonly context?: string | undefined;
}

/** KUBECONFIG, or the file kubectl would take. */
export function defaultKubeconfig(env: Environment = process.env): string {
  const named = env["KUBECONFIG"] ?? "";
  return named === "" ? join(homedir(), ".kube", "config") : named;
}

export async function kubeconfigAccess(options: KubeconfigOptions): Promise<Access> {
  let chosen = await choose(options);
  return {
    origin: options.path,
    server: chosen.server,
    namespace: chosen.namespace,
    credentials: () => chosen.credentials(),
    refresh: async () => {
      chosen = await choose(options);
    },
  };
}

async function choose(options: KubeconfigOptions): Promise<Omit<Access, "origin" | "refresh">> {
  const merged = await load(options.path);
  const name = options.context ?? merged.currentContext;
  if (name === undefined) throw invalid(`${options.path} has no current-context: set one, or name a context`);
  const context = find(merged.contexts, "context", name, options.path).fields;
  const cluster = find(merged.clusters, "cluster", text(context["cluster"]) ?? "", options.path);
  const userName = text(context["user"]);
  const user = userName === undefined ? undefined : find(merged.users, "user", userName, options.path);
  return {
    server: serverOf(cluster, options.path),
    namespace: text(context["namespace"]),
    credentials: credentialsOf(cluster, user, options.path),
  };
}

function serverOf(cluster: Named, path: string): URL {
  const server = text(cluster.fields["server"]) ?? "";
  if (!URL.canParse(server) || !/^https?:/i.test(server))
    throw invalid(`${path}: the cluster's server is not an http(s) URL`);
  if (text(cluster.fields["proxy-url"]) !== undefined) throw handOver(path, "names a proxy-url");
  return new URL(server);
}

function credentialsOf(cluster: Named, user: Named | undefined, path: string): () => Promise<Credentials> {
  const fields = user?.fields ?? {};
  if (fields["exec"] !== undefined) throw handOver(path, "gets its credentials from an exec plugin");
  if (fields["auth-provider"] !== undefined)
    throw handOver(path, "gets its credentials from an auth-provider");
  if (fields["as"] !== undefined) throw handOver(path, "impersonates another user");
  const secret = user ?? { fields: {}, directory: "." };
  return async () => ({
    authorization: await authorizationOf(secret, path),
    ca: await material(cluster, "certificate-authority", path),
    cert: await material(secret, "client-certificate", path),
    key: await material(secret, "client-key", path),
    servername: text(cluster.fields["tls-server-name"]),
    insecure: cluster.fields["insecure-skip-tls-verify"] === true,
  });
}

async function authorizationOf(user: Named, path: string): Promise<string | undefined> {
  const file = text(user.fields["tokenFile"]);
  if (file !== undefined) return `Bearer ${(await contents(user, file, path)).trim()}`;
  const token = text(user.fields["token"]);
  if (token !== undefined) return `Bearer ${token}`;
  const name = text(user.fields["username"]);
  if (name === undefined) return undefined;
  return `Basic ${Buffer.from(`${name}:${text(user.fields["password"]) ?? ""}`).toString("base64")}`;
}

/** PEM material, inline (`name-data`, base64) or in a file (`name`). Inline wins, as in kubectl. */
async function material(entry: Named, name: string, path: string): Promise<string | undefined> {
  const inline = text(entry.fields[`${name}-data`]);
  if (inline !== undefined) return Buffer.from(inline, "base64").toString("utf8");
  const file = text(entry.fields[name]);
  return file === undefined ? undefined : contents(entry, file, path);
}

async function contents(entry: Named, file: string, path: string): Promise<string> {
  const full = isAbsolute(file) ? file : resolve(entry.directory, file);
  try {
    return await readFile(full, "utf8");
  } catch (error) {
    throw invalid(`${path} refers to ${full}, which cannot be read: ${describe(error)}`);
  }
}

async function load(path: string): Promise<Merged> {
  const clusters = new Map<string, Named>();
  const contexts = new Map<string, Named>();
  const users = new Map<string, Named>();
  let currentContext: string | undefined;
  let found = 0;
  const files = path.split(delimiter).filter((file) => file !== "");
  for (const file of files) {
    const config = await parse(file, files.length > 1);
    if (config === undefined) continue;
    found++;
    currentContext ??= text(config["current-context"]);
    collect(clusters, config["clusters"], "cluster", file);
    collect(contexts, config["contexts"], "context", file);
    collect(users, config["users"], "user", file);
  }
  if (found === 0) throw invalid(`no kubeconfig file found at ${path}`);
  return { currentContext, clusters, contexts, users };
}

async function parse(file: string, mayBeAbsent: boolean): Promise<Fields | undefined> {
  let source: string;
  try {
    source = await readFile(file, "utf8");
  } catch (error) {
    const absent = isObject(error) && error["code"] === "ENOENT";
    if (absent && mayBeAbsent) return undefined;
    const hint = absent ? "; name one with KUBECONFIG or the kubeconfig option, or run in a pod" : "";
    throw invalid(`cannot read the kubeconfig ${file}: ${describe(error)}${hint}`);
  }
  const value = await decode(source, file);
  if (!isObject(value)) throw invalid(`${file} is not a kubeconfig: expected a mapping at the top`);
  return value;
}

async function decode(source: string, file: string): Promise<unknown> {
  if (source.trimStart().startsWith("{")) {
    try {
      return JSON.parse(source);
    } catch {
      // A YAML flow mapping also starts with a brace: let the YAML reader decide.
    }
  }
  const yaml = await import("yaml").catch((error: unknown) => {
    throw new ConclaveError(
      "unsupported",
      `reading ${file} needs the package "yaml": npm install yaml (a kubeconfig written as JSON does not need it)`,
      { cause: error },
    );
  });
  try {
    // A kubeconfig has no use for aliases: a bomb of them is refused.
    return yaml.parse(source, { maxAliasCount: 100, logLevel: "error" });
  } catch (error) {
    // The parser's message quotes the source, which holds secrets: only the position is reported.
    const line =
      isObject(error) && Array.isArray(error["linePos"]) && isObject(error["linePos"][0])
        ? error["linePos"][0]["line"]
        : "?";
    throw invalid(`${file} is not valid YAML (line ${String(line)})`);
  }
}

function collect(into: Map<string, Named>, list: unknown, kind: string, file: string): void {
  if (!Array.isArray(list)) return;
  for (const item of list) {
    if (!isObject(item)) continue;
    const name = text(item["name"]);
    const fields = item[kind];
    if (name === undefined || into.has(name)) continue;
    into.set(name, { fields: isObject(fields) ? fields : {}, directory: dirname(resolve(file)) });
  }
}

function find(map: ReadonlyMap<string, Named>, kind: string, name: string, path: string): Named {
  const entry = map.get(name);
  if (entry === undefined)
    throw invalid(`${path} has no ${kind} named "${name}" (it has: ${[...map.keys()].join(", ") || "none"})`);
  return entry;
}

function handOver(path: string, what: string): ConclaveError {
  return new ConclaveError(
    "unsupported",
    `${path} ${what}, which Conclave does not run itself: load it with KubeConfig of @kubernetes/client-node and pass that object as kubernetesBackend({ kubeConfig })`,
  );
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
