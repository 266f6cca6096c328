/** Where a server of the command line listens, and the secret that opens it. */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { InvalidArgumentError, Option } from "commander";
import { describe } from "../kit/errors.js";
import { UsageError } from "./failure.js";
import { rememberSecret } from "./secrets.js";

export interface Address {
  readonly host: string;
  readonly port: number;
}

const TOKEN_VARIABLE = "CONCLAVE_SIDECAR_TOKEN";
const LARGEST_TOKEN_FILE = 4096;

export function listenOption(description: string): Option {
  return new Option("--listen <host:port>", description).argParser((text: string) => {
    const address = parseAddress(text);
    if (address !== undefined) return address;
    throw new InvalidArgumentError("Write for example 127.0.0.1:4040, [::1]:4040 or just 4040.");
  });
}

/** `host:port`, `[::1]:port`, or a port alone: then on loopback. */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:(?:\[(?<six>[0-9a-f:.]+)\]|(?<name>[a-z0-9][a-z0-9.-]*)):)?(?<port>[0-9]{1,5})$/i.exec(
    text,
  );
  const { six, name, port } = match?.groups ?? {};
  if (port === undefined || Number(port) > 65_535) return undefined;
  if (six !== undefined && isIP(six) !== 6) return undefined;
  return { host: six ?? name ?? "127.0.0.1", port: Number(port) };
}

/** The token of the file, or of the environment; `undefined`: none is set. */
export function sidecarToken(file: string | undefined): string | undefined {
  const token = file === undefined ? process.env[TOKEN_VARIABLE] : readToken(file);
  if (token === undefined || token === "") return undefined;
  rememberSecret(token);
  return token;
}

function readToken(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`--token-file cannot be read: ${describe(error)}`);
  }
  const token = text.trim();
  if (token === "") throw new UsageError("--token-file is empty; put at least 16 characters into it");
  if (text.length > LARGEST_TOKEN_FILE) throw new UsageError("--token-file is too long to be a token");
  return token;
}
