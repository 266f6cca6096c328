/** Small answers over HTTP, each with the same headers. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { SECURITY_HEADERS } from "./security.js";

export const LARGEST_BODY = 16 * 1024;

/** A file of the page, in memory. */
export interface Asset {
  readonly type: string;
  readonly body: Buffer;
}

/** By exact path. */
export type Assets = ReadonlyMap<string, Asset>;

export function answer(response: ServerResponse, status: number, body: object): void {
  send(response, status, "application/json; charset=utf-8", `${JSON.stringify(body)}\n`);
}

export function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  // After a refusal the rest of the request is not read: the connection must not be used again.
  if (status === 413) response.setHeader("connection", "close");
  response.writeHead(status, {
    ...SECURITY_HEADERS,
    "content-type": type,
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
}

export function notAllowed(response: ServerResponse, allow: string): void {
  response.setHeader("allow", allow);
  answer(response, 405, { error: `use ${allow}` });
}

/** Reads and drops the body: no route takes one. `false` = too large, and the connection is done for. */
export async function smallBody(request: IncomingMessage): Promise<boolean> {
  if (Number(request.headers["content-length"] ?? 0) > LARGEST_BODY) return false;
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > LARGEST_BODY) return false;
  }
  return true;
}

export function pathOf(url: string | undefined): string | null {
  if (url === undefined || !url.startsWith("/")) return null;
  return url.replace(/[?#].*$/s, "");
}

/** A part of a path as it was meant; `null` if it cannot be read. */
export function decode(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
