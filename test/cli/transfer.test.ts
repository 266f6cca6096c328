/** An operator asks for a named successor: the leader hands over in good order. */
import { describe, expect, it } from "vitest";
import { Cli, conclave, inProcess, scratch } from "./process.js";

describe("conclave transfer", () => {
  it("makes the candidate lead that is named", async () => {
    const at = ["--lock-dir", scratch()];
    const stand = (id: string): Cli =>
      new Cli(["run", "jobs", "--id", id, "--ttl", "10s", "--retry", "300ms", "--log", "json", ...at]);
    const first = stand("a");
    const led = await first.event("elected");
    const others = [stand("b"), stand("c")];
    for (const other of others) await other.event("leader");
    const { code, out, err } = await conclave(["transfer", "jobs", "--to", "c", "--json", ...at]);
    expect(err).toBe("");
    const next = await others[1]!.event("elected");
    expect(JSON.parse(out)).toMatchObject({
      ...{ event: "taken", candidate: led.candidate, token: led.token, to: "c", next: next.candidate },
    });
    expect(code).toBe(0);
    expect(await first.event("ended")).toMatchObject({ token: led.token });
    const again = await conclave(["transfer", "jobs", "--to", "c", ...at]);
    expect(again).toMatchObject({ code: 0, out: `${next.candidate} leads "jobs" already` });
  });

  it("says that nobody leads, and refuses what makes no sense", async () => {
    const at = ["--lock-dir", scratch()];
    expect(await inProcess(["transfer", "jobs", "--to", "b", ...at])).toMatchObject({ code: 1 });
    expect(await inProcess(["transfer", "jobs", ...at])).toMatchObject({ code: 2 });
    expect(await inProcess(["transfer", "jobs", "--to", "", ...at])).toMatchObject({ code: 2 });
    expect(await inProcess(["run", "jobs", "--priority", "much", ...at])).toMatchObject({ code: 2 });
  });
});
