/**
 * What must not be written where. The linter knows most of these too; this test
 * also sees what reaches a name by a detour, and it cannot be silenced by a
 * comment.
 */
import { describe, expect, it } from "vitest";
import { lineAt, sources } from "./sources.js";

interface Ban {
  readonly pattern: RegExp;
  readonly instead: string;
  /** Where it is forbidden, and the one place inside where it is not. */
  readonly within: RegExp;
  readonly except?: RegExp;
}

const LAWFUL = /^src\/(seam|api|kit|law|election|lock|record|backends)\//;
const CLOCK = /^src\/kit\/clock\.ts$/;
/** What runs inside the user's program; the command line and the test kit are programs of their own. */
const LIBRARY = /^src\/(?!cli\/|exec\/|executor\/|demo\/|terminal\/|dashboard\/|testing\/)/;

const BANS: readonly Ban[] = [
  {
    pattern: /\bDate\.now\b|\bnew Date\b|\bperformance\s*\.\s*now\b|\bprocess\.hrtime\b/g,
    instead: "Clock.now() or Clock.wall() (src/kit/clock.ts)",
    within: LAWFUL,
    except: CLOCK,
  },
  {
    pattern: /\bset(?:Timeout|Interval|Immediate)\b|"(?:node:)?timers(?:\/promises)?"/g,
    instead: "Clock.after() or sleep() (src/kit/wait.ts)",
    within: LAWFUL,
    except: CLOCK,
  },
  {
    pattern: /\bMath\.random\b|\brandom(?:Bytes|UUID|Int|FillSync)\b|\bgetRandomValues\b/g,
    instead: "Clock.random() or Clock.uniqueId()",
    within: LAWFUL,
    except: CLOCK,
  },
  {
    pattern: /\bAbortSignal\.(?:any|timeout)\b/g,
    instead: "bounded() or onAbort() (src/kit/wait.ts): these are lost to the collector on Node 20",
    within: /^src\//,
  },
  {
    pattern: /\bconsole\s*\./g,
    instead: "the logger that was handed in",
    within: LIBRARY,
  },
  {
    pattern: /\bprocess\.(?:exit|abort)\b|\bprocess\.(?:on|once|addListener)\(/g,
    instead: "an error or an event: signals and exits belong to the program",
    within: LIBRARY,
  },
  {
    pattern: /\bas any\b|\bas unknown as\b|@ts-(?:ignore|nocheck|expect-error)|:\s*any\b/g,
    instead: "a type that is true",
    within: /^src\//,
  },
];

function trespasses(path: string, code: string): string[] {
  return BANS.filter((ban) => ban.within.test(path) && !ban.except?.test(path)).flatMap((ban) =>
    [...code.matchAll(ban.pattern)].map(
      (match) => `${path}:${lineAt(code, match.index)}: ${match[0]}; use ${ban.instead}`,
    ),
  );
}

describe("bans", () => {
  it("time, chance, exits and loose types stay out of the sources", () => {
    expect(sources("src").flatMap((source) => trespasses(source.path, source.code))).toEqual([]);
  });

  it("sees each of them when it is there", () => {
    const bad = [
      "Date.now()",
      "new Date()",
      "performance.now()",
      "globalThis.setTimeout(f)",
      'import { setTimeout as s } from "node:timers/promises"',
      "Math.random()",
      "randomUUID()",
      "AbortSignal.any([])",
      "AbortSignal.timeout(1)",
      "console.log(1)",
      "process.exit(1)",
      'process.on("SIGTERM", f)',
      "x as any",
      "x as unknown as Y",
    ];
    for (const line of bad) expect(trespasses("src/law/term.ts", line), line).not.toEqual([]);
    expect(trespasses("src/kit/clock.ts", "Date.now()")).toEqual([]);
    expect(trespasses("src/cli/main.ts", "process.exit(1)")).toEqual([]);
  });
});
