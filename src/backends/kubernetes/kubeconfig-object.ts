/**
 * A `KubeConfig` object of `@kubernetes/client-node` created by the user. Only
 * its structure is used: the package is not a dependency. It supports what our
 * own reading of kubeconfig files does not: exec plugins, OIDC, proxies.
 */
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { RequestOptions } from "node:https";
import { invalid } from "../../kit/errors.js";
import type { Access, Credentials } from "./access.js";

/** The part of `KubeConfig` that is used. */
export interface KubeConfigLike {
  getCurrentCluster(): { readonly server: string; readonly name?: string } | null;
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
  getCurrentContext?(): string;
  getContextObject?(name: string): { readonly namespace?: string | undefined } | null;
}

export function kubeConfigAccess(config: KubeConfigLike): Access {
  const cluster = config.getCurrentCluster();
  if (cluster === null || typeof cluster.server !== "string" || !URL.canParse(cluster.server)) {
    throw invalid(
      "the KubeConfig has no current cluster with a server URL: load a configuration into it and set its current context",
    );
  }
  const context = config.getCurrentContext?.();
  const namespace = context === undefined ? undefined : config.getContextObject?.(context)?.namespace;
  return {
    origin: "KubeConfig",
    server: new URL(cluster.server),
    namespace: typeof namespace === "string" && namespace !== "" ? namespace : undefined,
    credentials: () => ask(config),
    // The object refreshes its own tokens whenever it is asked.
    refresh: () => Promise.resolve(),
  };
}

async function ask(config: KubeConfigLike): Promise<Credentials> {
  const options: RequestOptions = { headers: {} };
  await config.applyToHTTPSOptions(options);
  const headers: Record<string, string> = {};
  let authorization: string | undefined;
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    if (typeof value !== "string") continue;
    if (name.toLowerCase() === "authorization") authorization = value;
    else headers[name.toLowerCase()] = value;
  }
  if (authorization === undefined && typeof options.auth === "string") {
    authorization = `Basic ${Buffer.from(options.auth).toString("base64")}`;
  }
  return {
    authorization,
    headers,
    ca: pem(options.ca),
    cert: pem(options.cert),
    key: pem(options.key),
    passphrase: options.passphrase,
    servername: options.servername,
    insecure: options.rejectUnauthorized === false,
    agent: ownAgent(options.agent),
  };
}

/**
 * A plain agent says nothing the other options do not say, and a new one comes
 * with every call, without connections to reuse: then ours is used. A special
 * one (a proxy) is the user's way to connect.
 */
function ownAgent(agent: RequestOptions["agent"]): HttpAgent | undefined {
  if (!(agent instanceof HttpAgent)) return undefined;
  const prototype: unknown = Object.getPrototypeOf(agent);
  return prototype === HttpsAgent.prototype || prototype === HttpAgent.prototype ? undefined : agent;
}

function pem(value: unknown): string | Buffer | undefined {
  if (typeof value === "string" || Buffer.isBuffer(value)) return value;
  if (Array.isArray(value)) return value.map((part) => String(part)).join("\n");
  return undefined;
}
