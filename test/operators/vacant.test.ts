/** Elections without a leader are seen by everything that looks at a whole store. */
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { Cli, inProcess, scratch } from "../cli/process.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import { until } from "../support/until.js";

/** Neither has ever had a candidate: the store has a record of theirs, as of many that are vacant. */
async function seen(url: string): Promise<void> {
  for (const name of ["idle", "vacant"]) await inProcess(["pause", name, "--backend", url]);
  const table = new Cli(["observe", "--watch", "--json", "--backend", url]);
  const page = new Cli(["serve", "--observe-only", "--listen", "0", "--backend", url]);
  const at = /http:\/\/\S+/.exec(await page.line(/listening on http/))![0];
  const answer: unknown = await (await fetch(`${at}/elections`)).json();
  expect(answer).toEqual({ elections: ["idle", "vacant"] });
  for (const election of ["idle", "vacant"])
    expect(JSON.parse(await table.line((line) => line.includes(`"${election}"`)))).toMatchObject({
      ...{ event: "leader", election, candidate: null },
    });
  // What comes later is found too.
  await inProcess(["pause", "later", "--backend", url]);
  await until(async () => (await fetch(`${at}/elections/later`)).ok, 20_000);
  for (const cli of [table, page]) {
    cli.kill("SIGTERM");
    expect((await cli.exit).code).toBe(0);
  }
}

describe("vacant elections", { timeout: 60_000 }, () => {
  it("are followed by observe --watch and serve --observe-only, on files", () =>
    seen(pathToFileURL(scratch()).href));

  it.skipIf(!hasEtcd())("and on etcd", async () => {
    const server = await EtcdServer.start();
    onTestFinished(() => server.stop());
    await seen(`etcd://${server.endpoints.join(",")}`);
  });
});
