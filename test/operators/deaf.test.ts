/** Candidates that do not follow requests: operators are told, before and after. */
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { fileBackend } from "../../src/backends/file/index.js";
import { Election } from "../../src/election/election.js";
import { fileURLToPath } from "node:url";
import { inProcess, scratch } from "../cli/process.js";
import { until } from "../support/until.js";
import { run, stand } from "./scenario.js";

/** Opened as a user does who has not read of `controls`. */
function deaf(url: string, id: string): Election {
  const backend = fileBackend({ directory: fileURLToPath(url) });
  return new Election({ name: "mailer", id, backend, closeBackend: true, allowUnfenced: true });
}

const IGNORED = "mailer: paused, but led: its candidates do not follow requests (controls: true)";

describe("a pause that candidates do not follow", () => {
  it("is said when it is asked for, and shown once somebody leads all the same", async () => {
    const url = pathToFileURL(scratch()).href;
    await using a = deaf(url, "a");
    await using b = deaf(url, "b");
    const first = await a.campaign();
    const { out } = await inProcess(["pause", "mailer", "--backend", url]);
    expect(out).toMatch(/^"mailer" is paused; a-\w+ goes on leading$/m);
    expect(out).toContain("opened without controls: true do not obey");
    // The leader of before may go on: that is what a pause is.
    const before = await inProcess(["list", "--backend", url]);
    expect(before.out).toContain("(paused)");
    expect(before.out).not.toContain("but led");
    await first.resign();
    await b.campaign();
    for (const command of ["list", "status"]) {
      const { code, out: shown } = await inProcess([command, "--backend", url]);
      expect(shown.split("\n").at(-1), command).toBe(IGNORED);
      expect(code).toBe(0);
    }
    expect((await run(url, "list")).lines).toMatchObject([{ paused: true, pauseIgnored: true }]);
    // Asked for again it is the same pause: what has happened since is still shown.
    await inProcess(["pause", "mailer", "--backend", url]);
    expect((await run(url, "list")).lines).toMatchObject([{ pauseIgnored: true }]);
    await inProcess(["unpause", "mailer", "--backend", url]);
    expect((await run(url, "list")).lines).toMatchObject([{ paused: false }]);
  });

  it("with nobody leading: whoever leads later has ignored it", async () => {
    const url = pathToFileURL(scratch()).href;
    await inProcess(["pause", "mailer", "--backend", url]);
    await using a = deaf(url, "a");
    await a.campaign();
    expect((await inProcess(["status", "--backend", url])).out).toContain(IGNORED);
  });
});

describe("conclave transfer while the election is paused", () => {
  it("asks nothing: the heir would give leadership back, and nobody would lead", async () => {
    const url = pathToFileURL(scratch()).href;
    const [a, b] = [await stand(url, "mailer", "a"), await stand(url, "mailer", "b")];
    try {
      await until(() => a.leading || b.leading);
      const [leader, heir] = a.leading ? [a, "b"] : [b, "a"];
      const { term } = leader;
      await run(url, "pause", "mailer");
      const detail = '"mailer" is paused: `conclave unpause mailer` first';
      expect(await run(url, "transfer", "mailer", "--to", heir)).toMatchObject({
        ...{ code: 1, lines: [{ event: "refused", candidate: leader.candidate, to: heir, detail }] },
      });
      expect(term!.held).toBe(true);
    } finally {
      await Promise.all([a.close(), b.close()]);
    }
  });
});
