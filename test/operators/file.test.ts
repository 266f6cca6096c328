import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { inProcess, scratch } from "../cli/process.js";
import { operate, run, stand } from "./scenario.js";
import { until } from "../support/until.js";

describe("operators, on files", () => {
  it("list, resign, pause, unpause, history", { timeout: 60_000 }, async () => {
    await operate(pathToFileURL(scratch()).href, "mailer", "kept");
  });

  it("a paused election without a candidate is listed, and says so", async () => {
    const url = pathToFileURL(scratch()).href;
    expect((await run(url, "pause", "idle")).code).toBe(0);
    const { out } = await inProcess(["list", "--backend", url]);
    expect(out).toMatch(/^ELECTION +LEADER +TOKEN +SINCE +CHANGES$/m);
    expect(out).toMatch(/^idle +nobody \(paused\)$/m);
  });

  it("a leader that does not listen is said, with what to do", async () => {
    const url = pathToFileURL(scratch()).href;
    const a = await stand(url, "mailer", "a");
    await until(() => a.leading);
    expect(await run(url, "resign", "mailer", "--candidate", "x")).toMatchObject({ code: 1 });
    await a.close();
    expect(await run(url, "resign", "mailer")).toMatchObject({ code: 1, lines: [{ event: "nobody" }] });
    expect(await run(url, "history", "other")).toMatchObject({ code: 1 });
    expect((await inProcess(["history", "other", "--backend", url])).out).toContain(
      "no leader has kept a history",
    );
    const text = (await inProcess(["history", "mailer", "--backend", url])).out;
    expect(text).toMatch(
      /\d+ +a-[0-9a-f]+ +closed +the election was closed\n1 terms recorded, 0 changes of leader$/,
    );
  });
});
