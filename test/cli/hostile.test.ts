/** Output that cannot be written, names that steer terminals, secrets where they do not belong: as real processes. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { ask, until } from "./http.js";
import { Cli, conclave, scratch } from "./process.js";

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

/** A store that accepts connections and never answers. */
async function blackHole(): Promise<{ port: number; connected: Promise<unknown> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  const connected = once(server, "connection");
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return { port: (server.address() as AddressInfo).port, connected };
}

describe("a full disk under the output", () => {
  const full = ["sh", "-c", 'exec "$@" >/dev/full', "sh"];
  const lost = /^conclave: cannot write to stdout \(ENOSPC\): lines are lost$/;

  it.each([
    ["run", ["run", "jobs", "--ttl", "2s"]],
    ["serve", ["serve", "jobs", "--ttl", "2s", "--listen", "127.0.0.1:0", "--log", "json"]],
    ["observe", ["observe", "jobs"]],
  ])("does not end %s, which says so and ends with 4 when it is told to stop", async (command, args) => {
    const directory = scratch();
    const store = ["--lock-dir", directory];
    const cli = new Cli([...args, ...store], {}, undefined, full);
    await until("it says that lines are lost", () => cli.err.some((line) => lost.test(line)));
    // What it does goes on: the leadership is acquired, or a change is still looked for.
    if (command === "observe") {
      const other = await conclave(["run", "jobs", "--try", "--max-term", "200ms", ...store]);
      expect(other.code).toBe(0);
    } else {
      await until("it leads", async () => (await conclave(["leader", "jobs", ...store])).code === 0);
    }
    expect(cli.child.exitCode).toBeNull();
    cli.kill("SIGTERM");
    expect(await cli.exit).toEqual({ code: 4, signal: null });
    expect(cli.err.filter((line) => lost.test(line))).toHaveLength(1);
  });

  it("is not an answer that was given", async () => {
    const directory = scratch();
    const leader = new Cli(["run", "jobs", "--log", "json", "--lock-dir", directory]);
    await leader.event("elected");
    const asked = new Cli(["leader", "jobs", "--lock-dir", directory], {}, undefined, full);
    expect(await asked.exit).toEqual({ code: 4, signal: null });
    expect(asked.err).toEqual([expect.stringMatching(lost)]);
  });

  it("is told from a reader that has gone, which is how one asks to stop", async () => {
    const flags = ["--lock-dir", scratch(), "--ttl", "2s", "--log", "json"];
    const child = spawn(process.execPath, [MAIN, "run", "jobs", "--work-every", "50ms", ...flags], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    closers.push(() => child.kill("SIGKILL"));
    let err = "";
    child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
    const exit = once(child, "exit");
    await once(child.stdout, "data");
    child.stdout.destroy();
    expect(await exit).toEqual([0, null]);
    expect(err).toBe("");
  });
});

describe("conclave lock", () => {
  it("that times out before the store has answered once does not know whether it is held: 3", async () => {
    const url = `etcd://127.0.0.1:${(await blackHole()).port}`;
    const timed = await conclave([
      "lock",
      "deploy",
      "--quiet",
      "--timeout",
      "300ms",
      "--backend",
      url,
      "--",
      "true",
    ]);
    expect(timed.err).toMatch(
      /^conclave: timed out waiting for lock "deploy"; whether it is held is not known: /,
    );
    expect(timed.code).toBe(3);
  });
});

it("conclave leader that is stopped before the store has answered has no answer: 128 + n", async () => {
  const hole = await blackHole();
  const cli = new Cli(["leader", "jobs", "--backend", `etcd://127.0.0.1:${hole.port}`]);
  await hole.connected;
  cli.kill("SIGTERM");
  expect(await cli.exit).toEqual({ code: 143, signal: null });
  expect(cli.err).toEqual(["conclave: stopped by SIGTERM"]);
});

it("conclave observe refuses a bad name at once, also among good ones", async () => {
  const { code, err } = await conclave(["observe", "good", "b\nad", "--lock-dir", scratch()]);
  expect(err).toMatch(/^conclave: name "b\\nad" holds a control character/);
  expect(code).toBe(2);
});

describe("observe --watch", () => {
  /** Folders and files that no election has made. */
  function litter(directory: string): void {
    const shelf = join(directory, "elections");
    mkdirSync(shelf, { recursive: true, mode: 0o700 });
    for (const name of [
      "n-%0a",
      "n-%e2%80%a8",
      "n-",
      "n-%66oo",
      "n-Ab",
      `n-${"x".repeat(240)}`,
      "x",
      "n-%zz",
    ])
      mkdirSync(join(shelf, name));
    writeFileSync(join(shelf, "n-file"), "not a folder");
  }

  it("goes on for the others when one folder is foreign", async () => {
    const directory = scratch();
    litter(directory);
    const flags = ["--lock-dir", directory, "--ttl", "2s", "--log", "json"];
    const leader = new Cli(["run", "jobs", "--id", "a", ...flags]);
    await leader.event("elected");
    const observer = new Cli(["observe", "--watch", "--lock-dir", directory]);
    await observer.line(/\[jobs\] NEW LEADER .* a-/);
    leader.kill("SIGTERM");
    await leader.exit;
    await observer.line(/\[jobs\] VACANT/);
    observer.kill("SIGTERM");
    expect(await observer.exit).toEqual({ code: 0, signal: null });
    const watched = new Set(observer.out.flatMap((line) => /\[([^\]]*)\]/.exec(line)?.[1] ?? []));
    expect([...watched].toSorted()).toEqual(["file", "jobs"]);
  });

  it.each([
    ["dumb", false],
    ["xterm", true],
  ])("with TERM=%s uses control sequences: %s", async (term, steers) => {
    const directory = scratch();
    const leader = new Cli(["run", "jobs", "--id", "a", "--log", "json", "--lock-dir", directory]);
    await leader.event("elected");
    // `script` runs the command in a terminal of its own.
    const command = [process.execPath, MAIN, "observe", "--watch", "--lock-dir", directory].join(" ");
    const env = { ...process.env, TERM: term, NO_COLOR: "" };
    const child = spawn("script", ["-qfec", command, "/dev/null"], {
      stdio: ["pipe", "pipe", "ignore"],
      env,
    });
    closers.push(() => child.kill("SIGKILL"));
    let drawn = "";
    child.stdout.on("data", (chunk: Buffer) => (drawn += chunk.toString()));
    await until("it names the leader", () => /\ba-[0-9a-f]{16}/.test(drawn));
    expect(drawn.includes("\u001b")).toBe(steers);
    child.stdin.write("\u0003"); // Ctrl-C in that terminal
    await once(child, "exit");
  });
});

describe("what others choose", () => {
  it("cannot turn a line around or steer the terminal: ids, names, values", async () => {
    const directory = scratch();
    const id = "web\u202e1-\u200b";
    const flags = ["--lock-dir", directory, "--ttl", "2s", "--id", id, "--value", "a\u2066\u001b[2Jb"];
    const cli = new Cli(["run", "jobs\u202ex", ...flags]);
    await cli.line(/Status: LEADER/);
    const other = new Cli(["run", "jobs\u202ex", "--lock-dir", directory, "--ttl", "2s", "--id", "other"]);
    await other.line(/NEW LEADER/);
    const observer = new Cli(["observe", "jobs\u202ex", "--lock-dir", directory]);
    await observer.line(/NEW LEADER/);
    const leader = await conclave(["leader", "jobs\u202ex", "--lock-dir", directory]);
    const all = [...cli.out, ...other.out, ...observer.out, leader.out].join("\n");
    expect(all).toContain("[web\\u202e1-\\u200b]");
    expect(all).not.toMatch(/[\u001b\u202e\u200b\u2066]/);
    const bad = await conclave(["run", "jobs", "--ttl", "\u001b[2J\u202e", "--lock-dir", directory]);
    expect(bad.code).toBe(2);
    expect(bad.err).not.toMatch(/[\u001b\u202e]/);
  });

  it("is not changed in fields because it equals a secret", async () => {
    const token = "candidate-election-token";
    const flags = ["--lock-dir", scratch(), "--ttl", "2s", "--id", token, "--log", "json"];
    const cli = new Cli(["serve", token, ...flags, "--value", token, "--listen", "127.0.0.1:0"], {
      CONCLAVE_SIDECAR_TOKEN: token,
    });
    const elected = await cli.event("elected");
    expect(elected).toMatchObject({
      election: token,
      candidate: expect.stringMatching(`^${token}-[0-9a-f]+$`),
    });
  });

  it("is not read for secrets where it is the wrapped command's", async () => {
    const script = 'echo "$1"';
    const argument = "https://ab:elected@host?key=candidate&password=election";
    for (const command of ["exec", "lock"]) {
      const flags = command === "exec" ? ["--log", "json"] : [];
      const cli = new Cli([
        command,
        "jobs",
        "--lock-dir",
        scratch(),
        ...flags,
        "--",
        "sh",
        "-c",
        script,
        "sh",
        argument,
      ]);
      expect(await cli.exit).toEqual({ code: 0, signal: null });
      expect(cli.out).toEqual([argument]);
      const lines = cli.err.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as object);
      if (command === "exec")
        expect(lines).toContainEqual(expect.objectContaining({ event: "elected", election: "jobs" }));
    }
  });

  it("but a password never shows, whatever fails", async () => {
    const url = `etcd://root:correct%20horse@127.0.0.1:1/x`;
    const cli = new Cli(["run", "jobs", "--log", "json", "--backend", url]);
    await cli.event("error");
    cli.kill("SIGTERM");
    await cli.exit;
    expect([...cli.out, ...cli.err].join("\n")).not.toMatch(/correct|horse/);
  });
});

it("a fault that nobody foresaw is not an answer: 4, one line, no secret", async () => {
  const fault = `setInterval(() => {
    if (process.listenerCount("uncaughtException") > 0) throw new Error("no etcd://root:hunter2hunter@host");
  }, 20)`;
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(fault)}` };
  const { code, out, err } = await conclave(["observe", "jobs", "--json", "--lock-dir", scratch()], env);
  expect(err).toBe("conclave: unexpected fault: no etcd://***@host");
  expect(out).not.toContain("hunter2");
  expect(code).toBe(4);
});

it("a full disk under stderr does not keep serve from answering", async () => {
  const full = ["sh", "-c", 'exec "$@" 2>/dev/full', "sh"];
  const cli = new Cli(
    ["serve", "jobs", "--lock-dir", scratch(), "--listen", "127.0.0.1:0"],
    {},
    undefined,
    full,
  );
  const url = /(http:\S+)/.exec(await cli.line(/^listening on/))![1]!;
  expect((await ask(`${url}/elections`)).status).toBe(200);
  cli.kill("SIGTERM");
  expect(await cli.exit).toEqual({ code: 0, signal: null });
});
