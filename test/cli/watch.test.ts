import { describe, expect, it } from "vitest";
import { elapsed, tableLines } from "../../src/terminal/table.js";
import type { TableRow } from "../../src/terminal/table.js";
import { watchTable } from "../../src/cli/watch.js";
import { Election, memoryBackend } from "../../src/index.js";
import { until } from "./http.js";
import { Cli, conclave, scratch } from "./process.js";

const NOW = 1_800_000_000_000;
const WIDE = { columns: 200, rows: 50 };

function row(news: Partial<TableRow>): TableRow {
  return { election: "jobs", leader: null, token: null, since: null, changes: 0, trouble: null, ...news };
}

describe("the table", () => {
  it("has a column for each thing, and a row for each election", () => {
    const lines = tableLines(
      [
        row({ leader: "web-1", token: "33", since: NOW - 130_000, changes: 4 }),
        row({ election: "mailer", leader: undefined }),
        row({ election: "x", trouble: "the store is away" }),
      ],
      NOW,
      WIDE,
    );
    expect(lines[0]).toMatch(/^ELECTION +LEADER +TOKEN +SINCE +CHANGES$/);
    expect(lines[1]).toMatch(/^jobs +web-1 +33 +\d\d:\d\d:\d\d \(2m 10s\) +4$/);
    expect(lines[2]).toMatch(/^mailer +\? +0$/);
    expect(lines[3]).toMatch(/^x +nobody +0$/);
    expect(lines[4]).toBe("x: the store is away");
    expect(lines[1]!.indexOf("web-1")).toBe(lines[0]!.indexOf("LEADER"));
  });

  it("fits the terminal, whatever the names, and steers nothing", () => {
    const many = Array.from({ length: 30 }, (_, index) => row({ election: `${"n".repeat(120)}${index}` }));
    const lines = tableLines([row({ leader: "a\u001b[2Jb" }), ...many], NOW, { columns: 40, rows: 12 });
    expect(lines.length).toBe(11);
    expect(lines.at(-1)).toBe("… and 22 more");
    for (const line of lines) expect(Array.from(line).length).toBeLessThanOrEqual(40);
    expect(tableLines([row({ leader: "a\u001b[2Jb" })], NOW, WIDE).join()).not.toContain("\u001b");
  });

  it.each([
    [400, "0s"],
    [59_000, "59s"],
    [61_000, "1m 1s"],
    [3_600_000, "1h 0m"],
    [200_000_000, "2d 7h"],
  ])("%d ms are %s", (ms, text) => expect(elapsed(ms)).toBe(text));
});

describe("conclave observe --watch", () => {
  it("draws again in place when the leader changes, and gives the cursor back", async () => {
    const backend = memoryBackend();
    await using candidate = new Election({ name: "jobs", backend, id: "web" });
    const stop = new AbortController();
    let drawn = "";
    const terminal = { columns: 100, rows: 20, write: (text: string) => void (drawn += text) };
    const watching = watchTable({
      store: { backend, where: "memory" },
      names: async () => ["jobs"],
      retryMs: undefined,
      terminal,
      signal: stop.signal,
    });
    await until("it is vacant", () => /jobs +nobody +0\n/.test(drawn));
    const term = await candidate.campaign();
    await until("it is led", () => drawn.includes(candidate.candidate));
    expect(drawn).toMatch(new RegExp(`jobs +${candidate.candidate} +${term.token} +\\S+ \\(0s\\) +1\n`));
    stop.abort();
    await watching;
    expect(drawn.startsWith("\u001b[?25l")).toBe(true);
    expect(drawn.endsWith("\u001b[?25h")).toBe(true);
    // Two lines each time, and each time over the last two.
    expect(drawn.split("\u001b[2A").length).toBeGreaterThan(2);
  });

  it("without a terminal is lines, of all elections there are", async () => {
    const directory = scratch();
    const flags = ["--lock-dir", directory, "--ttl", "2s"];
    const first = new Cli(["run", "jobs", "--id", "a", "--log", "json", ...flags]);
    const second = new Cli(["run", "Ma/il er", "--id", "b", "--log", "json", ...flags]);
    await Promise.all([first.event("elected"), second.event("elected")]);
    const observer = new Cli(["observe", "--watch", "--lock-dir", directory]);
    await observer.line(/\[jobs\] NEW LEADER .* a-/);
    await observer.line(/\[Ma\/il er\] NEW LEADER .* b-/);
    expect(observer.out.join("")).not.toContain("\u001b");
    observer.kill("SIGINT");
    expect(await observer.exit).toEqual({ code: 0, signal: null });
  });

  it("refuses to guess", async () => {
    const none = await conclave(["observe"]);
    expect(none.code).toBe(2);
    expect(none.err).toMatch(/missing required argument 'NAME'/);
    const memory = await conclave(["observe", "--watch", "--backend", "memory:"]);
    expect(memory.code).toBe(2);
    expect(memory.err).toMatch(/there is no election .* name one/);
  });
});
