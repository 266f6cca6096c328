/** Processes that work for a leader hold the pipe of its last will: nothing is given back while one of them lives. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { lastWill, openElection } from "../../src/index.js";
import { TestProcess } from "../support/processes.js";
import { until } from "../support/until.js";
import { stores } from "./stores.js";

let runtime: string;
const before = process.env["XDG_RUNTIME_DIR"];
beforeEach(() => {
  runtime = mkdtempSync(join(tmpdir(), "conclave-run-"));
  process.env["XDG_RUNTIME_DIR"] = runtime;
});
afterEach(() => {
  if (before === undefined) delete process.env["XDG_RUNTIME_DIR"];
  else process.env["XDG_RUNTIME_DIR"] = before;
  rmSync(runtime, { recursive: true, force: true, maxRetries: 10 });
});

// On files a follower sees the death of the leader itself.
const other = stores.filter(({ name }) => name === "etcd" || name === "redis");

it.each(other)(
  "$name: the worker of a killed leader lives: it is waited for",
  async ({ open }) => {
    const url = await open();
    const leader = new TestProcess("test/will/programs/leader.ts", [], { STORE: url });
    await until(() => leader.lines.length > 0, 20_000);
    const worker = Number(leader.lines[0]!["worker"]);
    await using election = await openElection({ name: "jobs", id: "next", backend: url, ttlMs: 60_000 });
    let elected = false;
    const campaign = election.campaign().then((term) => {
      elected = true;
      return term;
    });
    leader.child.kill("SIGKILL");
    await leader.exited;
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(elected).toBe(false);
    process.kill(worker, "SIGKILL");
    await campaign;
  },
  60_000,
);

it("a helper that is lost after the pipe was handed out is replaced, and the will says that it is in doubt", async () => {
  const url = pathToFileURL(join(runtime, "store")).href;
  const warnings: string[] = [];
  const logger = {
    debug: () => {},
    info: () => {},
    warn: (text: string) => void warnings.push(text),
    error: () => {},
  };
  await using election = await openElection({ name: "jobs", backend: url, lastWill: true, logger });
  await using _term = await election.campaign();
  expect(lastWill.stdio).not.toBe("ignore");
  const { helper, lost } = lastWill.status;
  process.kill(helper!, "SIGKILL");
  await until(() => lastWill.status.helper !== undefined && lastWill.status.helper !== helper);
  expect(lastWill.status.lost).toBe(lost + 1);
  expect(warnings.join()).toContain("the helper of the last will was lost");
  const wills = join(runtime, "conclave-wills");
  const doubt = (): unknown =>
    (
      JSON.parse(
        readFileSync(
          join(
            wills,
            readdirSync(wills).find((name) => name.endsWith(".json"))!,
          ),
          "utf8",
        ),
      ) as {
        doubt: unknown;
      }
    ).doubt;
  await until(() => doubt() !== null);
});
