/**
 * The import map: who may know whom. Arrows point down; a room that is not in
 * the map fails the build, so that a new one has to say where it stands.
 */
import { posix } from "node:path";
import { describe, expect, it } from "vitest";
import { importsOf, sources } from "./sources.js";
import type { Source } from "./sources.js";

interface Room {
  /** Rooms it may import, itself aside. "backends/*" is every store. */
  readonly rooms: readonly string[];
  /** Node's own modules it may import; `true` for all. */
  readonly node: true | readonly string[];
  /** Packages it may import at run time. */
  readonly npm?: readonly string[];
}

const LIBRARY = ["core", "record"];

const ROOMS: Record<string, Room> = {
  core: { rooms: [], node: [] },
  record: { rooms: ["core"], node: [] },
  backends: { rooms: ["core", "record"], node: true },
  // Lazily, and only to read a kubeconfig.
  "backends/kubernetes": { rooms: ["core", "record"], node: true, npm: ["yaml"] },
  "backends/open": { rooms: ["core", "record", "backends/*"], node: true },
  "backends/registered": { rooms: ["core"], node: [] },
  fencing: { rooms: ["core"], node: true },
  cron: { rooms: ["core", "fencing"], node: ["node:diagnostics_channel"], npm: ["croner"] },
  testing: {
    rooms: ["core", "record", "fencing", "cron", "backends/file", "backends/memory", "backends/etcd"],
    node: true,
  },
  metrics: { rooms: ["core"], node: [], npm: ["prom-client"] },
  sidecar: { rooms: [...LIBRARY, "fencing", "backends/open"], node: true },
  dashboard: { rooms: ["sidecar"], node: true },
  cli: {
    rooms: [...LIBRARY, "fencing", "cron", "metrics", "sidecar", "dashboard", "backends/*"],
    node: true,
    npm: ["commander"],
  },
  index: { rooms: [...LIBRARY, "backends/*"], node: [] },
  backend: { rooms: [...LIBRARY, "backends/open"], node: [] },
};

/** The few files of core that touch the machine, and what each may touch. */
const DOORS: Record<string, readonly string[]> = {
  "src/core/clock.ts": ["node:crypto", "node:os"],
  "src/core/events.ts": ["node:diagnostics_channel"],
  "src/core/names.ts": ["node:os"],
  "src/core/waiting.ts": ["node:events"],
};

/** `src/backends/etcd/wire.ts` → `backends/etcd`; `src/core/term.ts` → `core`. */
function roomOf(path: string): string {
  const parts = path
    .replace(/^src\//, "")
    .replace(/\.(ts|js)$/, "")
    .split("/");
  return parts[0] === "backends" ? `backends/${parts[1]}` : parts[0]!;
}

function rulesOf(room: string): Room | undefined {
  return ROOMS[room] ?? (room.startsWith("backends/") ? ROOMS["backends"] : undefined);
}

function allowed(rules: Room, from: string, to: string): boolean {
  if (from === to || rules.rooms.includes(to)) return true;
  return to.startsWith("backends/") && rules.rooms.includes("backends/*");
}

function complaint(source: Source, specifier: string): string | null {
  const room = roomOf(source.path);
  const rules = rulesOf(room);
  if (rules === undefined) return `room ${room} is not in the import map (test/shape/imports.test.ts)`;
  if (specifier.startsWith(".")) {
    const target = posix.join(posix.dirname(source.path), specifier);
    if (!target.startsWith("src/")) return `leaves src/ for ${specifier}`;
    const to = roomOf(target);
    return allowed(rules, room, to) ? null : `${room} may not import ${to} (${specifier})`;
  }
  if (specifier.startsWith("node:")) {
    const open = rules.node === true || rules.node.includes(specifier);
    return open || DOORS[source.path]?.includes(specifier) ? null : `${room} may not import ${specifier}`;
  }
  return rules.npm?.some((name) => specifier === name || specifier.startsWith(`${name}/`))
    ? null
    : `${room} may not import the package ${specifier}`;
}

describe("import map", () => {
  const all = sources("src");

  it.each(all)("$path imports only what its room may", (source) => {
    const complaints = importsOf(source).map((specifier) => complaint(source, specifier));
    expect(complaints.filter((c) => c !== null)).toEqual([]);
  });

  it("sees a trespass when there is one", () => {
    const of = (path: string, specifier: string): string | null =>
      complaint({ path, text: "", code: "" }, specifier);
    expect(of("src/core/term.ts", "../record/lease.js")).toMatch("core may not import record");
    expect(of("src/core/term.ts", "node:fs")).toMatch("may not import node:fs");
    expect(of("src/record/lease.ts", "../backends/file/index.js")).toMatch("may not import backends/file");
    expect(of("src/backends/etcd/index.ts", "../file/fs.js")).toMatch("may not import backends/file");
    expect(of("src/backends/etcd/index.ts", "../../core/term.js")).toBeNull();
    expect(of("src/core/term.ts", "lodash")).toMatch("package lodash");
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
