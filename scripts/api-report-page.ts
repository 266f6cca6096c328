/**
 * The public API as one page, made from the published declarations. A test
 * compares it, so that a change of the API is seen in review, and reports names
 * without a comment and types that are used but not exported.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseSync } from "oxc-parser";

export interface ApiReport {
  readonly page: string;
  /** Exported names without a TSDoc comment, `@internal` members, types that leak. */
  readonly complaints: readonly string[];
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** One declaration file, read once. */
interface Declarations {
  readonly path: string;
  readonly text: string;
  readonly comments: readonly { readonly value: string; readonly start: number; readonly end: number }[];
  /** What is declared here, exported or not. */
  readonly declared: ReadonlyMap<string, Node>;
  /** Names exported under another name, or from another file. */
  readonly exported: ReadonlyMap<string, { readonly name: string; readonly from: string | undefined }>;
  /** Local name → where it comes from; only files of this package. */
  readonly imported: ReadonlyMap<string, { readonly name: string; readonly from: string }>;
}

interface Found {
  readonly file: Declarations;
  readonly name: string;
  readonly node: Node;
}

/** Subpath → declaration file, from the text of package.json. */
export function entriesOf(manifest: string): ReadonlyMap<string, string> {
  const { name, exports } = JSON.parse(manifest) as {
    name: string;
    exports: Record<string, { types: string } | string>;
  };
  return new Map(
    Object.entries(exports).flatMap(([subpath, target]) =>
      typeof target === "string" ? [] : [[name + subpath.slice(1), target.types.replace("./", "")] as const],
    ),
  );
}

export function apiReport(root: string, entries: ReadonlyMap<string, string>): ApiReport {
  const files = new Map<string, Declarations>();
  const read = (path: string): Declarations => {
    const known = files.get(path) ?? declarations(join(root, path), path);
    files.set(path, known);
    return known;
  };
  const complaints: string[] = [];
  const published = new Set<string>();
  const sections: string[] = [];
  const all: [string, Found][] = [];
  for (const [subpath, path] of entries) {
    const names = [...read(path).exported.keys()].toSorted();
    sections.push(`## ${subpath}`);
    for (const name of names) {
      const found = resolve(read, path, name);
      if (found === undefined) {
        complaints.push(`${subpath}: ${name} is not found in the declarations`);
        continue;
      }
      const id = `${found.file.path}#${found.name}`;
      const before = published.has(id);
      published.add(id);
      all.push([`${subpath}: ${name}`, found]);
      if (before) sections.push(`### ${name}\n\nAs above.`);
      else sections.push(section(name, found));
      if (summary(found) === undefined) complaints.push(`${subpath}: ${name} has no TSDoc comment`);
    }
  }
  for (const [label, found] of all) complaints.push(...leaks(label, found, read, published));
  const head =
    "# Public API\n\nGenerated from the published types by `npm run api`; `test/shape/api.test.ts` compares it.";
  return { page: `${[head, ...sections].join("\n\n")}\n`, complaints };
}

function declarations(absolute: string, path: string): Declarations {
  const text = readFileSync(absolute, "utf8");
  const { program, comments } = parseSync(absolute, text);
  const declared = new Map<string, Node>();
  const exported = new Map<string, { name: string; from: string | undefined }>();
  const imported = new Map<string, { name: string; from: string }>();
  const local = (source: unknown): string | undefined => {
    const value = (source as { value?: string } | null)?.value;
    return value?.startsWith(".") ? join(dirname(path), value).replace(/\.js$/, ".d.ts") : undefined;
  };
  const nameOf = (node: unknown): string => (node as { name: string }).name;
  for (const statement of program.body as unknown as readonly Node[]) {
    if (statement.type === "ImportDeclaration") {
      const from = local(statement["source"]);
      for (const specifier of statement["specifiers"] as readonly Node[])
        if (from !== undefined && specifier.type === "ImportSpecifier")
          imported.set(nameOf(specifier["local"]), { name: nameOf(specifier["imported"]), from });
      continue;
    }
    const inner = (statement["declaration"] as Node | null | undefined) ?? statement;
    for (const name of declaredNames(inner)) {
      declared.set(name, statement);
      if (statement.type === "ExportNamedDeclaration") exported.set(name, { name, from: undefined });
    }
    if (statement.type !== "ExportNamedDeclaration") continue;
    for (const specifier of statement["specifiers"] as readonly Node[])
      exported.set(nameOf(specifier["exported"]), {
        name: nameOf(specifier["local"]),
        from: local(statement["source"]),
      });
  }
  return { path, text, comments, declared, exported, imported };
}

function declaredNames(node: Node): string[] {
  if (node.type === "VariableDeclaration")
    return (node["declarations"] as readonly Node[]).map((one) => (one["id"] as { name: string }).name);
  const id = node["id"] as { name?: string } | null | undefined;
  return id?.name === undefined ? [] : [id.name];
}

/** Follows re-exports and imports to the declaration itself. */
function resolve(read: (path: string) => Declarations, path: string, name: string): Found | undefined {
  const file = read(path);
  const exported = file.exported.get(name);
  if (exported?.from !== undefined) return resolve(read, exported.from, exported.name);
  const own = exported?.name ?? name;
  const node = file.declared.get(own);
  if (node !== undefined) return { file, name: own, node };
  const imported = file.imported.get(own);
  return imported === undefined ? undefined : resolve(read, imported.from, imported.name);
}

function section(name: string, found: Found): string {
  const { file, node } = found;
  let code = file.text.slice(node.start, node.end);
  for (const comment of file.comments.toReversed()) {
    if (comment.start < node.start || comment.end > node.end) continue;
    code = code.slice(0, comment.start - node.start) + code.slice(comment.end - node.start);
  }
  const lines = code.split("\n").filter((line) => line.trim() !== "" && line.trim() !== "#private;");
  return `### ${name}\n\n${summary(found) ?? ""}\n\n\`\`\`typescript\n${lines.join("\n")}\n\`\`\``;
}

/** The first sentence of the comment just before the declaration. */
function summary({ file, node }: Found): string | undefined {
  const comment = file.comments.findLast(
    ({ end }) => end <= node.start && file.text.slice(end, node.start).trim() === "",
  );
  if (comment === undefined || !comment.value.startsWith("*")) return undefined;
  const text = comment.value
    .split("\n")
    .map((line) => line.replace(/^\s*\*+ ?/, "").trim())
    .join(" ")
    .trim();
  return /^.*?[.:](?=\s|$)/.exec(text)?.[0] ?? text;
}

function leaks(
  label: string,
  found: Found,
  read: (path: string) => Declarations,
  published: ReadonlySet<string>,
): string[] {
  const { file, node } = found;
  const complaints = file.comments
    .filter(({ start, end, value }) => start > node.start && end < node.end && value.includes("@internal"))
    .map(() => `${label} has an @internal member`);
  for (const name of new Set(typeNames(node))) {
    const used =
      file.declared.has(name) || file.imported.has(name) ? resolve(read, file.path, name) : undefined;
    if (used !== undefined && !published.has(`${used.file.path}#${used.name}`))
      complaints.push(`${label} uses ${name}, which is not exported`);
  }
  return complaints;
}

/** Names of the types a declaration mentions. */
function typeNames(node: unknown): string[] {
  if (typeof node !== "object" || node === null) return [];
  if (Array.isArray(node)) return node.flatMap(typeNames);
  const fields = node as Record<string, unknown>;
  const own =
    fields["type"] === "TSTypeReference"
      ? [fields["typeName"]]
      : fields["type"] === "TSClassImplements" || fields["type"] === "TSInterfaceHeritage"
        ? [fields["expression"]]
        : [];
  const names = own.flatMap((id) => {
    const name = (id as { name?: unknown } | null)?.name;
    return typeof name === "string" ? [name] : [];
  });
  return [...names, ...Object.values(fields).flatMap(typeNames)];
}
