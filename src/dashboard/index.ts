/**
 * The live page: files written by hand, no build step, no framework. It is fed
 * by the event stream of whoever serves it (the sidecar or the demo) and asks
 * nothing else. Everything is served from here: no request leaves the machine.
 */
import { readdir, readFile } from "node:fs/promises";
import { extname } from "node:path";
import type { Assets } from "../sidecar/http.js";

const FOLDER = new URL("./page/", import.meta.url);
const TYPES: ReadonlyMap<string, string> = new Map([
  [".html", "text/html; charset=utf-8"],
  [".css", "text/css; charset=utf-8"],
  [".js", "text/javascript; charset=utf-8"],
  [".svg", "image/svg+xml"],
]);

/** The page's files by path: `/ui` is the page itself, the rest is below. */
export async function dashboard(): Promise<Assets> {
  const assets = new Map<string, { readonly type: string; readonly body: Buffer }>();
  for (const name of await readdir(FOLDER)) {
    const type = TYPES.get(extname(name));
    if (type === undefined) continue;
    const body = await readFile(new URL(name, FOLDER));
    assets.set(name === "index.html" ? "/ui" : `/ui/${name}`, { type, body });
  }
  return assets;
}
