/** Where ZooKeeper listens, and how to be sure that it is ZooKeeper. */
import { readFile } from "node:fs/promises";
import type { ConnectionOptions } from "node:tls";
import { describe, invalid } from "../../../kit/errors.js";
import { ZooKeeperError } from "./errors.js";

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

export const DEFAULT_PORT = 2181;

/** Takes `host`, `host:port` and `[v6]:port`. */
export function parseEndpoint(text: string): Endpoint {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^/:@\s?#[\]]+)(?::(\d{1,5}))?$/.exec(text.trim());
  const host = match?.[1];
  if (match === null || host === undefined) {
    throw invalid(
      // Not repeated where it may hold a user and a password.
      /[@%?]|:(?!\d)/.test(text)
        ? "a ZooKeeper host is host or host:port: user and password go before the hosts of the URL, or into ZOOKEEPER_AUTH"
        : `not a ZooKeeper host: ${JSON.stringify(text)}; write host or host:port`,
    );
  }
  const port = match[2] === undefined ? DEFAULT_PORT : Number(match[2]);
  if (port < 1 || port > 65_535)
    throw invalid(`port ${port} of ZooKeeper host ${host} is out of range: use 1 to 65535`);
  return { host: host.replace(/^\[|\]$/g, ""), port };
}

export function authority({ host, port }: Endpoint): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
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
    throw new ZooKeeperError(
      "permanent",
      "invalid",
      `cannot read the ${what} file for ZooKeeper: ${describe(cause)}`,
      { cause },
    );
  }
}
