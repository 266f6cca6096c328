/**
 * Pasted onto five machines, every example names a store that they share, or says
 * that one machine is meant: pages, and the help of every command.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { inProcess } from "../cli/process.js";
import { ROOT, files, lineAt } from "./sources.js";

const CANDIDATES = /\bconclave (?:run|exec|lock|cron|serve)\b(?! --help| status)/;
const STORE = /--backend|CONCLAVE_BACKEND|--lock-dir|--lease-lock|--kubeconfig/;
/** Pages about files themselves, and about leaving them. */
const ABOUT_FILES = ["docs/backends/file.md", "docs/guide/moving-to-another-store.md"];
/** Decisions of the past are not examples; the reference of the API is generated. */
const NO_EXAMPLES = /^docs\/(?:adr\/|api\.md)/;

interface Block {
  readonly where: string;
  readonly language: string;
  readonly text: string;
}

const pages = ["README.md", ...files("docs", ".md")].filter((page) => !NO_EXAMPLES.test(page));

function blocks(page: string): Block[] {
  const text = readFileSync(join(ROOT, page), "utf8");
  return [...text.matchAll(/^```(ts|sh)\n([\s\S]*?)^```$/gm)].map((match) => ({
    where: `${page}:${lineAt(text, match.index)}`,
    language: match[1]!,
    text: match[2]!,
  }));
}

/** Why this must not be pasted onto several machines; `undefined`: it may. */
function complaint({ where, language, text }: Block): string | undefined {
  const local = /\bfile:|--lock-dir/.test(text) && !/one machine/.test(text);
  if (local && !ABOUT_FILES.some((page) => where.startsWith(page)))
    return "uses files and does not say that one machine is meant";
  if (language === "sh" && CANDIDATES.test(text) && !STORE.test(text)) return "names no store";
  if (language === "ts" && /\bopenBackend\(\)/.test(text)) return "opens the default store";
  const opened = text.split("openElection(").slice(1);
  if (language === "ts" && opened.some((call) => !/^[^;]*\bbackend\b/.test(call)))
    return "opens an election without a store";
  return undefined;
}

describe("examples name a store that machines share", () => {
  it.each(pages.flatMap(blocks))("$where", (block) => {
    expect(complaint(block)).toBeUndefined();
  });

  it("and one that does not is noticed", () => {
    const of = (language: string, text: string): string | undefined =>
      complaint({ where: "x.md:1", language, text });
    expect(of("sh", "conclave exec x -- ./x.sh\n")).toBe("names no store");
    expect(of("sh", "npx conclave lock x --lock-dir /x -- ./x.sh\n")).toMatch(/one machine/);
    expect(of("ts", 'await openElection({ name: "x" });')).toMatch(/without a store/);
    expect(of("ts", 'const e = await openElection({ name: "x" });\nconst backend = 1;')).toMatch(/without/);
    expect(of("ts", "schedule({ backend: await openBackend() });")).toMatch(/default store/);
  });

  it.each(["", "run", "exec", "lock", "cron", "serve"])("help of conclave %s", async (command) => {
    const { out } = await inProcess([...(command === "" ? [] : [command]), "--help"]);
    const examples = /Examples:\n((?: {2}.*\n)+)/.exec(out)?.[1] ?? "";
    expect(examples).toMatch(CANDIDATES);
    expect(complaint({ where: "help", language: "sh", text: `${examples}# one machine` })).toBeUndefined();
    for (const line of examples.split("\n"))
      if (/--lock-dir/.test(line)) expect(line).toMatch(/conclave (?:run|cron status)/);
  });
});
