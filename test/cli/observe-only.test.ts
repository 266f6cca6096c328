/** `serve --observe-only`: a page of a whole cluster that changes nothing. */
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { stand } from "../operators/scenario.js";
import { until } from "../support/until.js";
import { Cli, conclave, scratch } from "./process.js";

const TOKEN = "a token of a test, long enough".replaceAll(" ", "-");

describe("conclave serve --observe-only", () => {
  it("shows every election of the store, new ones too, and resigns none", { timeout: 60_000 }, async () => {
    const url = pathToFileURL(scratch()).href;
    const first = await stand(url, "jobs", "a");
    const late: Awaited<ReturnType<typeof stand>>[] = [];
    try {
      await until(() => first.leading);
      const args = ["serve", "--observe-only", "--ui", "--listen", "0", "--backend", url];
      const cli = new Cli(args, { CONCLAVE_SIDECAR_TOKEN: TOKEN });
      const line = await cli.line(/listening on http/);
      const at = /http:\/\/\S+/.exec(line)![0];
      const state = async (name: string): Promise<unknown> => (await fetch(`${at}/elections/${name}`)).json();
      await until(async () => (await fetch(`${at}/elections/jobs`)).ok);
      expect(await state("jobs")).toMatchObject({
        observer: true,
        leading: false,
        leader: { candidate: first.candidate, token: `${first.term!.token}` },
      });
      const headers = { authorization: `Bearer ${TOKEN}` };
      const asked = await fetch(`${at}/elections/jobs/resign`, { method: "POST", headers });
      expect([asked.status, await asked.json()]).toEqual([403, { error: "this server only observes" }]);
      expect(first.leading).toBe(true);
      expect(await (await fetch(`${at}/ui`)).text()).toContain("<title>");
      late.push(await stand(url, "later", "b"));
      await until(async () => (await fetch(`${at}/elections/later`)).ok, 20_000);
      // Nobody of this program has campaigned.
      expect((await conclave(["list", "--json", "--backend", url])).out).not.toContain("conclave-");
      cli.kill("SIGTERM");
      expect((await cli.exit).code).toBe(0);
    } finally {
      await Promise.all([first, ...late].map((election) => election.close()));
    }
  });

  it("says that it only observes whether or not it has a token: none would help", async () => {
    const url = pathToFileURL(scratch()).href;
    const cli = new Cli(["serve", "jobs", "--observe-only", "--listen", "0", "--backend", url]);
    const at = /http:\/\/\S+/.exec(await cli.line(/listening on http/))![0];
    for (const part of ["resign", "transfer?to=b"]) {
      const asked = await fetch(`${at}/elections/jobs/${part}`, { method: "POST" });
      expect([asked.status, await asked.json()]).toEqual([403, { error: "this server only observes" }]);
    }
    cli.kill("SIGTERM");
    expect((await cli.exit).code).toBe(0);
  });

  it("alone can do without names", async () => {
    expect(await conclave(["serve", "--backend", "memory:"])).toMatchObject({ code: 2 });
  });
});
