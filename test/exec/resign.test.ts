/** A wrapper that is asked to resign: its command is told first, and another candidate goes on with it. */
import { describe, expect, it } from "vitest";
import { Cli, conclave, scratch } from "../cli/process.js";

describe("conclave exec that is asked to resign", () => {
  it("ends its command with SIGTERM, hands over, and campaigns again", { timeout: 60_000 }, async () => {
    const at = ["--lock-dir", scratch(), "--ttl", "20s", "--log", "json"];
    const script = 'trap "echo told; exit 0" TERM; echo begun; while :; do sleep 0.1; done';
    const command = ["--", "sh", "-c", script];
    const first = new Cli(["exec", "jobs", "--id", "a", ...at, ...command]);
    await first.line(/^begun$/);
    const second = new Cli(["exec", "jobs", "--id", "b", ...at, ...command]);
    const { code, out } = await conclave(["resign", "jobs", "--json", at[0]!, at[1]!]);
    expect(code, out).toBe(0);
    await first.line(/^told$/);
    await second.line(/^begun$/);
    // It waits for its next turn: it has not ended.
    expect(first.child.exitCode).toBeNull();
  });
});
