/** Who leads next, from the command line: `--priority`, `--min-term`, `--ineligible`, `--roster`, and who is told of it. */
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { until } from "../support/until.js";
import { Cli, inProcess, scratch } from "./process.js";

interface State {
  readonly leader: { readonly candidate: string } | null;
  readonly candidates?: readonly { candidate: string; priority: number; eligible: boolean }[];
}

describe("candidates on the roster", () => {
  it(
    "hand over to a higher priority after --min-term, and observers see who stands",
    { timeout: 60_000 },
    async () => {
      const url = pathToFileURL(scratch()).href;
      const stand = (id: string, ...args: string[]): Cli =>
        new Cli(["run", "mailer", "--backend", url, "--ttl", "1s", "--log", "json", "--id", id, ...args]);
      const first = stand("first", "--roster", "--min-term", "500ms");
      await first.event("elected");
      const watching = stand("watching", "--ineligible");
      const server = new Cli(["serve", "mailer", "--observe-only", "--listen", "0", "--backend", url]);
      const at = /http:\/\/\S+/.exec(await server.line(/listening on http/))![0];
      const state = async (): Promise<State> =>
        (await (await fetch(`${at}/elections/mailer`)).json()) as State;
      const standing = async (): Promise<string> =>
        ((await state()).candidates ?? [])
          .map(({ candidate, priority, eligible }) => `${candidate.split("-")[0]} ${priority} ${eligible}`)
          .join(", ");
      await until(async () => (await standing()) === "first 0 true, watching 0 false", 20_000);

      const preferred = stand("preferred", "--priority", "10");
      await preferred.event("elected");
      expect(first.json.find(({ event }) => event === "ended")).toMatchObject({ reason: "resigned" });
      await until(async () => (await standing()).startsWith("preferred 10 true, first 0 true"), 20_000);

      // One that dies is left out a ttl after it was last heard; the ineligible one leads nothing meanwhile.
      preferred.kill("SIGKILL");
      await first.line(
        (line) =>
          line.includes('"elected"') && first.json.filter(({ event }) => event === "elected").length === 2,
      );
      await until(async () => (await standing()) === "first 0 true, watching 0 false", 20_000);
      expect(watching.json.some(({ event }) => event === "elected")).toBe(false);
      for (const cli of [first, watching, server]) {
        cli.kill("SIGTERM");
        expect((await cli.exit).code).toBe(0);
      }
    },
  );

  it("exec hands over as well: its command is stopped first", { timeout: 60_000 }, async () => {
    const directory = scratch();
    // By default it would lead for 30 s first: longer than this test waits.
    const store = ["--lock-dir", directory, "--ttl", "3s"];
    const command = ["--", "sh", "-c", "echo works; sleep 60"];
    const first = new Cli([
      "exec",
      "mailer",
      ...store,
      "--id",
      "first",
      "--roster",
      "--min-term",
      "500ms",
      ...command,
    ]);
    await first.line(/^works/);
    const preferred = new Cli([
      "exec",
      "mailer",
      ...store,
      "--id",
      "preferred",
      "--priority",
      "1",
      ...command,
    ]);
    await preferred.line(/^works/);
    for (const cli of [first, preferred]) cli.kill("SIGTERM");
    await Promise.all([first.exit, preferred.exit]);
  });

  it.each([
    [["--min-term", "30"], /no unit.*10s or 1m/],
    [["--min-term", "soon"], /not a number with a unit/],
    [["--priority", "high"], /whole number/],
    [["--try", "--ineligible"], /never elected/],
  ])("%j is refused", async (flags, says) => {
    const { code, err } = await inProcess(["run", "x", "--backend", "memory:", ...flags]);
    expect(code).toBe(2);
    expect(err).toMatch(says);
  });

  it("the help of run, serve and exec names them", async () => {
    for (const name of ["run", "serve", "exec"]) {
      const { out } = await inProcess([name, "--help"]);
      for (const flag of ["--priority", "--min-term", "--roster"]) expect(out).toContain(flag);
      expect(/^ +--ineligible /m.test(out)).toBe(name !== "exec");
    }
  });
});
