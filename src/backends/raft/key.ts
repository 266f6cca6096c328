/** The key that all peers share. */
import { isUtf8 } from "node:buffer";
import { readFileSync } from "node:fs";
import { describe, invalid } from "../../kit/errors.js";

export const SHORTEST_KEY = 32;

export interface KeySource {
  readonly key?: string | Uint8Array | undefined;
  readonly keyFile?: string | undefined;
  /** Taken if neither is given. */
  readonly variable: string | undefined;
}

/** `undefined` if none was given. Line ends and spaces around a text are no part of it. */
export function sharedKey({ key: given, keyFile, variable }: KeySource): Buffer | undefined {
  const found = given ?? (keyFile === undefined ? variable : readKey(keyFile));
  if (found === undefined) return undefined;
  const key = Buffer.from(typeof found === "string" ? found.trim() : found);
  if (key.length < SHORTEST_KEY)
    throw invalid(
      `the shared key${given === undefined && keyFile !== undefined ? " in the key file" : ""} has ${key.length} bytes; use at least ${SHORTEST_KEY}, for example the output of: openssl rand -hex 32`,
    );
  return key;
}

/** Random bytes are not a text: taken for one, half of them would be replaced. */
function readKey(path: string): string | Buffer {
  try {
    const bytes = readFileSync(path);
    return isUtf8(bytes) ? bytes.toString() : bytes;
  } catch (error) {
    throw invalid(`the key file cannot be read: ${describe(error)}`);
  }
}
