/** What a will may do, and what it must not: judged on wills that are written by hand and on real ones. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { executeWill } from "../../src/executor/execute.js";
import { lastWill, openBackend, openElection } from "../../src/index.js";
import { encodeWill } from "../../src/will/document.js";
import type { Will } from "../../src/will/document.js";
import { writeWill } from "../../src/will/file.js";
import { here, listed } from "../../src/will/processes.js";
import { Cli, conclave } from "../cli/process.js";
import { KEY, RaftCluster } from "../support/raft-cluster.js";
import { until } from "../support/until.js";
import { helpersOf } from "./helpers.js";

let directory: string;
let url: string;
const before = process.env["XDG_RUNTIME_DIR"];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "conclave-will-"));
  url = pathToFileURL(join(directory, "store")).href;
  process.env["XDG_RUNTIME_DIR"] = directory;
});

afterEach(() => {
  if (before === undefined) delete process.env["XDG_RUNTIME_DIR"];
  else process.env["XDG_RUNTIME_DIR"] = before;
  rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
});

/** A process that has ended. */
async function dead(): Promise<Will["processes"][number]> {
  const child = spawn("sleep", ["60"]);
  const process = listed(child.pid!);
  child.kill("SIGKILL");
  await once(child, "exit");
  return process;
}

function will(processes: Will["processes"], more: Partial<Will> = {}): Will {
  return { place: here(), processes, doubt: null, bequests: [], ...more };
}

async function written(document: Will): Promise<string> {
  const path = join(directory, "1-ab.json");
  await writeWill(path, document);
  return path;
}

describe("a will is refused", () => {
  it("if others may read it, if it is a link, and if it is none", async () => {
    const path = await written(will([await dead()]));
    for (const mode of [0o644, 0o640, 0o602]) {
      chmodSync(path, mode);
      await expect(executeWill(path, false)).rejects.toThrow(/mode 0600/);
    }
    chmodSync(path, 0o600);
    symlinkSync(path, join(directory, "2-ab.json"));
    await expect(executeWill(join(directory, "2-ab.json"), false)).rejects.toThrow(/ELOOP/);
    for (const text of [
      "",
      "{}",
      "null",
      '{"v":1}',
      encodeWill(will([])),
      encodeWill(will([{ pid: -1, started: null }])),
    ]) {
      writeFileSync(path, text);
      await expect(executeWill(path, false)).rejects.toThrow(/no will/);
    }
  });

  it("while a process that it lists lives, whatever its pipe says", async () => {
    const child = spawn("sleep", ["60"]);
    const path = await written(will([await dead(), listed(child.pid!)]));
    await expect(executeWill(path, true)).rejects.toThrow(/not certainly dead/);
    child.kill("SIGKILL");
    await once(child, "exit");
    await executeWill(path, true);
    expect(existsSync(path)).toBe(false);
  });

  it("in doubt: of another boot, another pid namespace, or with processes that nobody can tell of", async () => {
    const one = await dead();
    const place = here();
    for (const document of [
      will([one], { place: { ...place, bootId: "another" } }),
      will([one], { place: { ...place, pidNamespace: "pid:[1]" } }),
      will([one], { doubt: "a child may act" }),
    ])
      await expect(executeWill(await written(document), false)).rejects.toThrow(/nothing is given back/);
  });

  it("a pid that was given to another process is that of a dead one", async () => {
    const path = await written(will([{ pid: process.pid, started: "1" }]));
    expect(await executeWill(path, false)).toMatchObject({ failures: [] });
  });
});

it("a will of an old term does not touch the successor, 100 times", async () => {
  await using backend = await openBackend(url);
  const one = await dead();
  for (let i = 0; i < 100; i++) {
    await using first = await openElection({ name: "jobs", id: "c", backend, ttlMs: 60_000 });
    const term = await first.campaign();
    const { candidate, token } = term;
    await term.resign();
    // The same candidate leads again, or another.
    await using second = await openElection({ name: "jobs", id: "c", backend, ttlMs: 60_000 });
    const successor = await (i % 2 === 0 ? first : second).campaign();
    const claims = [{ election: "jobs", candidate, token }];
    const path = await written(will([one], { bequests: [{ url, imports: [], claims }] }));
    expect(await executeWill(path, false)).toEqual({ released: 0, notHeld: 1, failures: [] });
    await successor.proclaim("still leading");
    await successor.resign();
  }
}, 120_000);

describe("a process with a will", () => {
  it("writes its claim before the term begins, and nothing is left when it has closed", async () => {
    const election = await openElection({ name: "jobs", backend: url, lastWill: true });
    const wills = join(directory, "conclave-wills");
    let claims: unknown;
    election.on("elected", () => {
      const [name] = readdirSync(wills);
      claims = JSON.parse(readFileSync(join(wills, name!), "utf8"));
    });
    const term = await election.campaign();
    expect(JSON.stringify(claims)).toContain(`"token":"${term.token}"`);
    expect(lastWill.status).toMatchObject({ lost: 0, claims: 1 });
    const { helper } = lastWill.status;
    await term.resign();
    expect(lastWill.status.claims).toBe(0);
    await election.close();
    expect(readdirSync(wills)).toEqual([]);
    await until(() => !alive(helper!));
  });

  it("relative paths of its store's URL are absolute in it", async () => {
    const voters = await RaftCluster.start();
    try {
      const keyFile = join(directory, "key");
      writeFileSync(keyFile, KEY, { mode: 0o600 });
      const raft = `raft://${voters.list}?key-file=`;
      const backend = `both:?a=${encodeURIComponent(url)}&b=${encodeURIComponent(raft + relative(process.cwd(), keyFile))}`;
      await using election = await openElection({ name: "jobs", backend, lastWill: true });
      await election.campaign();
      const [name] = readdirSync(join(directory, "conclave-wills"));
      const { bequests } = JSON.parse(readFileSync(join(directory, "conclave-wills", name!), "utf8")) as Will;
      const stores = new URLSearchParams(bequests[0]!.url.slice("both:?".length));
      expect([...stores]).toEqual([
        ["a", url],
        ["b", `${raft}${keyFile}`],
      ]);
    } finally {
      await voters.stop();
    }
  });

  it("needs a URL", async () => {
    await using backend = await openBackend(url);
    await expect(openElection({ name: "jobs", backend, lastWill: true })).rejects.toThrow(
      /lastWill needs a URL/,
    );
  });

  it("shows no secret to others: not in arguments, not in files that others may read", async () => {
    const secret = "hunter2-very-secret";
    const backend = `redis://:${secret}@127.0.0.1:1/?quarantine=false`;
    const cli = new Cli(["run", "jobs", "--log", "json"], {
      CONCLAVE_BACKEND: backend,
      XDG_RUNTIME_DIR: directory,
    });
    await until(() => helpersOf(cli.child.pid!).length === 1);
    for (const pid of [cli.child.pid!, ...helpersOf(cli.child.pid!)])
      expect(readFileSync(`/proc/${pid}/cmdline`, "latin1")).not.toContain(secret);
    cli.kill("SIGTERM");
    await cli.exit;
  });

  it("refuses a directory for wills that others may enter, and leads all the same", async () => {
    mkdirSync(join(directory, "conclave-wills"), { mode: 0o755 });
    chmodSync(join(directory, "conclave-wills"), 0o755);
    const warnings: string[] = [];
    const logger = {
      debug: () => {},
      info: () => {},
      warn: (text: string) => void warnings.push(text),
      error: () => {},
    };
    await using election = await openElection({ name: "jobs", backend: url, lastWill: true, logger });
    await using _term = await election.campaign();
    expect(warnings.join()).toContain("mode 0700");
    expect(lastWill.status.helper).toBeUndefined();
  });
});

it("conclave last-will gives back what a process held that died with its helper, and not what one holds that lives", async () => {
  const env = { CONCLAVE_BACKEND: url, XDG_RUNTIME_DIR: directory };
  const lives = new Cli(["run", "mail", "--log", "json"], env);
  const dies = new Cli(["run", "jobs", "--ttl", "60s", "--log", "json"], env);
  await Promise.all([lives.event("elected"), dies.event("elected")]);
  dies.kill("SIGSTOP"); // it must not start another helper
  for (const pid of helpersOf(dies.child.pid!)) process.kill(pid, "SIGKILL");
  dies.kill("SIGKILL");
  await dies.exit;
  const { code, out } = await conclave(["last-will"], env);
  expect(code).toBe(0);
  expect(out).toContain("1 given back");
  expect(out).toContain(`process ${lives.child.pid} is not certainly dead`);
  expect(await conclave(["leader", "mail"], env)).toMatchObject({ code: 0 });
  lives.kill("SIGTERM");
  await lives.exit;
  expect(await conclave(["last-will"], env)).toMatchObject({ code: 0 });
});

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
