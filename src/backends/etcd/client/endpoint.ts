/** Where etcd listens, and how to be sure that it is etcd. */
import { readFile } from "node:fs/promises";
import type { ConnectionOptions } from "node:tls";
import { describe, invalid } from "../../../kit/errors.js";
import { EtcdError } from "./errors.js";

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** Files are read anew for every connection: a rotated certificate needs no restart. */
export interface TlsFiles {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** Name to expect in the certificate, if it is not the host of the endpoint. */
  readonly serverName?: string | undefined;
}

export const DEFAULT_PORT = 2379;

/** Takes `host`, `host:port`, `[v6]:port`, with or without `http://` or `https://`. */
export function parseEndpoint(text: string): Endpoint & { readonly secure: boolean | undefined } {
  // Not repeated where it may hold a user and a password.
  const match = /^(?:(https?):\/\/)?(\[[0-9a-fA-F:.]+\]|[^/:@\s?#[\]]+)(?::(\d{1,5}))?\/?$/.exec(text.trim());
  const host = match?.[2];
  if (match === null || host === undefined) {
    throw invalid(
      /@|%40|\?|(?<!https?):(?!\d)/i.test(text)
        ? "an etcd endpoint is host, host:port or https://host:port: user and password go into ETCD_USERNAME and ETCD_PASSWORD"
        : `not an etcd endpoint: ${JSON.stringify(text)}; write host, host:port or https://host:port`,
    );
  }
  const port = match[3] === undefined ? DEFAULT_PORT : Number(match[3]);
  if (port < 1 || port > 65_535)
    throw invalid(`port ${port} of etcd endpoint ${host} is out of range: use 1 to 65535`);
  return {
    host: host.replace(/^\[|\]$/g, ""),
    port,
    secure: match[1] === undefined ? undefined : match[1] === "https",
  };
}

export function authority(endpoint: Endpoint): string {
  return endpoint.host.includes(":")
    ? `[${endpoint.host}]:${endpoint.port}`
    : `${endpoint.host}:${endpoint.port}`;
}

export async function readTls(files: TlsFiles): Promise<ConnectionOptions> {
  const [ca, cert, key] = await Promise.all([
    readPem(files.ca, "ca"),
    readPem(files.cert, "cert"),
    readPem(files.key, "key"),
  ]);
  return {
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(files.serverName !== undefined && { servername: files.serverName }),
  };
}

async function readPem(path: string | undefined, what: string): Promise<Buffer | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path);
  } catch (cause) {
    throw new EtcdError("permanent", "invalid", `cannot read the ${what} file for etcd: ${describe(cause)}`, {
      cause,
    });
  }
}
