/**
 * The import map: who may know whom. Arrows point down; a folder that is not
 * in the map fails the build, so that a new one has to say what it may import.
 */
import { posix } from "node:path";
import { describe, expect, it } from "vitest";
import { importsOf, sources } from "./sources.js";
import type { Source } from "./sources.js";

interface Folder {
  /** Folders it may import, itself aside. "backends/*" is every store. */
  readonly folders: readonly string[];
  /** Node's own modules it may import; `true` for all. */
  readonly node: true | readonly string[];
  /** Packages it may import at run time. */
  readonly npm?: readonly string[];
}

/** What programs are written against: everything below the stores. */
const LIBRARY = ["seam", "api", "kit", "law", "record", "control", "election", "lock"];

const FOLDERS: Record<string, Folder> = {
  seam: { folders: [], node: [] },
  api: { folders: ["seam"], node: [] },
  kit: {
    folders: ["seam"],
    node: ["node:crypto", "node:os", "node:diagnostics_channel", "node:events"],
  },
  law: { folders: ["seam", "api", "kit"], node: [] },
  control: { folders: ["seam", "api", "kit"], node: [] },
  election: { folders: ["seam", "api", "kit", "law", "control"], node: [] },
  lock: { folders: ["seam", "api", "kit", "law", "control", "election"], node: [] },
  record: { folders: ["seam", "kit"], node: [] },
  session: { folders: ["seam", "kit"], node: [] },
  backends: { folders: ["seam", "kit", "record", "session", "files"], node: true },
  // Lazily, and only to read a kubeconfig.
  "backends/kubernetes": { folders: ["seam", "kit", "record"], node: true, npm: ["yaml"] },
  // Lazily, for URLs; other clients are handed in.
  "backends/redis": { folders: ["seam", "kit", "record"], node: true, npm: ["ioredis"] },
  // Lazily, for a URL.
  "backends/postgres": { folders: ["seam", "kit", "record"], node: true, npm: ["pg"] },
  // The same connections, and with a quorum the same elections.
  "backends/bully": { folders: ["seam", "kit", "backends/raft"], node: true },
  "backends/registry": { folders: ["seam", "kit", "backends/*"], node: [] },
  files: { folders: ["kit"], node: ["node:fs", "node:fs/promises"] },
  both: { folders: ["seam", "kit"], node: [] },
  will: { folders: ["seam", "kit"], node: true },
  open: { folders: [...LIBRARY, "both", "will", "backends/*"], node: true },
  executor: { folders: ["seam", "kit", "will", "open"], node: true },
  fencing: { folders: ["seam", "api", "kit", "files"], node: true },
  cron: { folders: [...LIBRARY, "fencing", "open"], node: [], npm: ["croner"] },
  metrics: { folders: ["seam", "api", "kit", "election", "cron", "will"], node: [], npm: ["prom-client"] },
  sidecar: { folders: [...LIBRARY, "fencing", "open"], node: true },
  dashboard: { folders: ["sidecar"], node: true },
  testing: { folders: [...LIBRARY, "fencing", "cron", "backends/*"], node: true },
  terminal: { folders: [...LIBRARY], node: true, npm: ["commander"] },
  exec: { folders: [...LIBRARY, "terminal", "will", "backends/*"], node: true },
  demo: {
    folders: [...LIBRARY, "terminal", "fencing", "cron", "sidecar", "dashboard", "backends/*"],
    node: true,
  },
  cli: {
    folders: [
      ...LIBRARY,
      "terminal",
      "exec",
      "demo",
      "fencing",
      "cron",
      "metrics",
      "sidecar",
      "dashboard",
      "backends/*",
      "both",
      "will",
      "executor",
      "open",
    ],
    node: true,
    npm: ["commander"],
  },
  index: { folders: [...LIBRARY, "both", "open", "will", "backends/*"], node: [] },
  backend: { folders: ["seam", "kit", "record", "open", "backends/registry"], node: [] },
};

/** `src/backends/etcd/wire.ts` → `backends/etcd`; `src/law/term.ts` → `law`. */
function folderOf(path: string): string {
  const parts = path
    .replace(/^src\//, "")
    .replace(/\.(ts|js)$/, "")
    .split("/");
  return parts[0] === "backends" ? `backends/${parts[1]}` : parts[0]!;
}

function rulesOf(folder: string): Folder | undefined {
  return FOLDERS[folder] ?? (folder.startsWith("backends/") ? FOLDERS["backends"] : undefined);
}

function allowed(rules: Folder, from: string, to: string): boolean {
  if (from === to || rules.folders.includes(to)) return true;
  return to.startsWith("backends/") && rules.folders.includes("backends/*");
}

function complaint(source: Source, specifier: string): string | null {
  const folder = folderOf(source.path);
  const rules = rulesOf(folder);
  if (rules === undefined) return `folder ${folder} is not in the import map (test/shape/imports.test.ts)`;
  if (specifier.startsWith(".")) {
    const target = posix.join(posix.dirname(source.path), specifier);
    if (!target.startsWith("src/")) return `leaves src/ for ${specifier}`;
    const to = folderOf(target);
    return allowed(rules, folder, to) ? null : `${folder} may not import ${to} (${specifier})`;
  }
  if (specifier.startsWith("node:")) {
    const open = rules.node === true || rules.node.includes(specifier);
    return open ? null : `${folder} may not import ${specifier}`;
  }
  return rules.npm?.some((name) => specifier === name || specifier.startsWith(`${name}/`))
    ? null
    : `${folder} may not import the package ${specifier}`;
}

describe("import map", () => {
  const all = sources("src");

  it.each(all)("$path imports only what its folder may", (source) => {
    const complaints = importsOf(source).map((specifier) => complaint(source, specifier));
    expect(complaints.filter((c) => c !== null)).toEqual([]);
  });

  it("sees a trespass when there is one", () => {
    const of = (path: string, specifier: string): string | null =>
      complaint({ path, text: "", code: "" }, specifier);
    expect(of("src/law/term.ts", "../record/lease.js")).toMatch("law may not import record");
    expect(of("src/record/hold.ts", "../law/lease.js")).toMatch("record may not import law");
    expect(of("src/backends/etcd/index.ts", "../../law/term.js")).toMatch("may not import law");
    expect(of("src/seam/backend.ts", "../kit/clock.js")).toMatch("seam may not import kit");
    expect(of("src/law/term.ts", "node:fs")).toMatch("may not import node:fs");
    expect(of("src/record/lease.ts", "../backends/file/index.js")).toMatch("may not import backends/file");
    expect(of("src/backends/etcd/index.ts", "../file/fs.js")).toMatch("may not import backends/file");
    expect(of("src/backends/etcd/index.ts", "../../kit/wait.js")).toBeNull();
    expect(of("src/law/term.ts", "lodash")).toMatch("package lodash");
    expect(of("src/attic/x.ts", "./y.js")).toMatch("not in the import map");
  });

  it("finds imports however they are written", () => {
    const code = `import a from "a"; import "b"; export * from "c"; await import("d"); import type { E } from "e"; // from "f"\n`;
    expect(importsOf({ path: "", text: code, code: code.replace(/\/\/.*/, "") })).toEqual([
      "a",
      "c",
      "d",
      "e",
    ]);
    expect(importsOf({ path: "", text: "", code: `import "b";` })).toEqual(["b"]);
  });

  it.each(["src/index.ts", "src/backend.ts"])("%s only re-exports", (path) => {
    const index = all.find((source) => source.path === path);
    const rest = (index?.code ?? "")
      .replace(/export\s+(type\s+)?(\*|\{[^}]*\})\s+from\s+"[^"]+";/g, "")
      .trim();
    expect(rest).toBe("");
  });
});
