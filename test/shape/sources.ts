import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export interface Source {
  /** From the repository's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
  /** The text without comments, strings kept. */
  readonly code: string;
}

/** All files under a folder whose name ends as told, in a stable order. */
export function files(folder: string, ending: string): string[] {
  const found = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).split(sep).join("/"));
  return found.sort();
}

export function sources(folder: string): Source[] {
  return files(folder, ".ts").map((path) => {
    const text = readFileSync(join(ROOT, path), "utf8");
    return { path, text, code: withoutComments(text) };
  });
}

/** Blanks comments and keeps line numbers. Strings and templates are stepped over, not into. */
export function withoutComments(text: string): string {
  const token = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g;
  return text.replace(token, (match) =>
    match.startsWith("//") || match.startsWith("/*") ? match.replace(/[^\n]/g, " ") : match,
  );
}

/** What a module imports or re-exports, by any of the ways to write it. */
export function importsOf(source: Source): string[] {
  const found: string[] = [];
  const pattern = /(?:(?<!")\bfrom\s*|\bimport\s*\(\s*|^\s*import\s+)"([^"]+)"/gm;
  for (const match of source.code.matchAll(pattern)) found.push(match[1]!);
  return found;
}

/** Line number (from 1) of an offset. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}
