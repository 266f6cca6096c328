/**
 * The README followed in an empty folder: each of its blocks, as an ES module and as CommonJS, on every Node that is supported, on Bun and
 * on Deno. Only the addresses are others: its stores are not on this machine.
 * The runtimes are fetched: it takes minutes, CONCLAVE_LONG=1.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../shape/sources.js";
import type { Runtime } from "./runtimes.js";
import { environment, installed, runtimes, unable } from "./runtimes.js";

const why = unable();
if (why !== undefined) console.warn(`\nOther runtimes were NOT tried: ${why}.\n`);
const all: readonly Runtime[] = why === undefined ? runtimes() : [];
const LIMIT_MS = 60_000;

const readme = readFileSync(join(ROOT, "README.md"), "utf8");
const blocks = (language: string): string[] =>
  [...readme.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
    ([, code]) => code!,
  );
const [job, loop, fragment] = blocks("ts") as [string, string, string];
const commands = blocks("sh").find((block) => block.includes("conclave cron"))!;

/** What the reader's own files do. */
const SCRIPTS = ["bill", "mailer", "deploy"];

describe.skipIf(why !== undefined)("the README in an empty folder", { timeout: 4 * LIMIT_MS }, () => {
  let folder = "";
  let stores = 0;
  let store = "";
  const children = new Set<ReturnType<typeof spawn>>();

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "conclave-readme-"));
    installed(folder, ["croner", "pg"]);
    for (const name of SCRIPTS) {
      writeFileSync(join(folder, `${name}.sh`), `#!/bin/sh\necho "${name} under $CONCLAVE_TOKEN"\nsleep 1\n`);
      chmodSync(join(folder, `${name}.sh`), 0o755);
    }
  }, 240_000);
  afterEach(async () => {
    const ends = [...children].map((child) => new Promise((resolve) => child.once("close", resolve)));
    for (const child of children) child.kill("SIGKILL");
    await Promise.all(ends);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));

  /** JavaScript, with the store of this test: as a module, or as CommonJS, which has no await outside of functions. */
  function program(name: string, code: string, kind: "mjs" | "cjs"): string {
    store = pathToFileURL(join(folder, `store-${++stores}`)).href;
    const source = join(folder, "source.mts");
    writeFileSync(source, code.replaceAll('"postgres://app@db/orders"', JSON.stringify(store)));
    const options = [
      "--module",
      "esnext",
      "--target",
      "es2022",
      "--noCheck",
      "--outDir",
      join(folder, "out"),
    ];
    execFileSync(
      process.execPath,
      [join(ROOT, "node_modules/typescript/bin/tsc"), "--ignoreConfig", ...options, source],
      {
        cwd: folder,
      },
    );
    const script = readFileSync(join(folder, "out/source.mjs"), "utf8");
    const file = join(folder, `${name}-${stores}.${kind}`);
    writeFileSync(file, kind === "mjs" ? script : asCommonJs(script));
    return file;
  }

  function start(runtime: Runtime, words: readonly string[], env: NodeJS.ProcessEnv = {}): Running {
    const child = spawn(words[0]!, words.slice(1), {
      cwd: folder,
      env: { ...environment(folder, runtime), ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    children.add(child);
    child.once("close", () => children.delete(child));
    return new Running(child);
  }

  describe.each(all)("on $name $version", (runtime) => {
    describe.each(["mjs", "cjs"] as const)("%s", (kind) => {
      const run = (name: string, code: string): Running =>
        start(runtime, [runtime.program, ...runtime.run, program(name, code, kind)]);

      it("runs the nightly job, and ends when it is told to", async () => {
        const running = run("job", job.replace("0 3 * * *", "* * * * * *"));
        await running.said(/^billing for \S+Z/m);
        running.child.kill("SIGTERM");
        expect(await running.exit, running.text).toBe(0);
      });

      it("runs the leader's loop, and ends when it is told to", async () => {
        const running = run("loop", loop);
        await running.said(/leads with token \d+/);
        running.child.kill("SIGTERM");
        expect(await running.exit, running.text).toBe(0);
        expect(running.text).toMatch(/resigned/);
      });

      it("holds a single term, and observes", async () => {
        const opening = `import { openElection } from "conclave";\nconst election = await openElection({ name: "mailer", backend: "postgres://app@db/orders" });\n`;
        const running = run("fragment", opening + fragment);
        await running.said(/nobody leads|leads with/);
      });
    });

    it("knows each command", async () => {
      store = pathToFileURL(join(folder, `store-${++stores}`)).href;
      const env = { CONCLAVE_BACKEND: store };
      const lines = commands.split("\n").filter((line) => line.startsWith("npx conclave"));
      expect(lines.length).toBeGreaterThanOrEqual(7);
      const command = (line: string): string[] => [
        "bash",
        "-c",
        `exec ${line
          .replace("npx conclave", "node_modules/.bin/conclave")
          .replace(/ {2,}#.*| # .*/, "")
          .replace("0 3 * * *", "* * * * * *")
          .replace("--ui", "--ui --listen 127.0.0.1:0")}`,
      ];
      const find = (name: string): string[] =>
        command(lines.find((line) => line.includes(`conclave ${name}`))!);
      const stop = async (running: Running): Promise<void> => {
        running.child.kill("SIGTERM");
        expect(await running.exit, running.text).toBe(0);
      };
      const guarded = async (): Promise<void> => {
        const cron = start(runtime, find("cron"), env);
        await cron.said(/^bill under \d+$/m);
        await stop(cron);
        const exec = start(runtime, find("exec"), env);
        expect(await exec.exit, exec.text).toBe(0);
        expect(exec.text).toMatch(/^mailer under \d+$/m);
        const lock = start(runtime, find("lock"), env);
        expect(await lock.exit, lock.text).toBe(0);
        expect(lock.text).toMatch(/^deploy under \d+$/m);
      };
      /** Rather than runs that are missed, each of them. */
      const refused = async (): Promise<void> => {
        for (const name of ["cron", "exec", "lock"]) {
          const running = start(runtime, find(name), env);
          expect(await running.exit, running.text).toBe(2);
          expect(running.text).toMatch(/start conclave with Node/);
        }
      };
      if (runtime.name.startsWith("node")) await guarded();
      else await refused();
      const leading = start(runtime, find("run"), env);
      await leading.said(/ELECTED/);
      const leader = start(runtime, find("leader"), env);
      expect(await leader.exit, leader.text).toBe(0);
      expect(leader.text).toMatch(/"token":"\d+"/);
      const observe = start(runtime, find("observe"), env);
      await observe.said(/token/);
      await stop(leading);
      const serve = start(runtime, find("serve"), env);
      await serve.said(/page: http/);
      const page = /page: (\S+)/.exec(serve.text)![1]!;
      expect((await fetch(page)).status).toBe(200);
      await Promise.all([stop(observe), stop(serve)]);
    });
  });

  it.each(all.filter(({ name }) => !name.startsWith("node")))(
    "$name plays the demo to its end",
    async (runtime) => {
      const running = start(runtime, ["node_modules/.bin/conclave", "demo", "--once"]);
      await running.said(/page: http/);
      expect(await running.exit, running.text).toBe(0);
      expect(running.text).toMatch(/frozen leader replaced/);
    },
  );

  it("and Jest imports it, in a test that its page shows how to start", () => {
    const jest = mkdtempSync(join(folder, "jest-"));
    installed(jest, ["jest@30"]);
    writeFileSync(
      join(jest, "package.json"),
      readFileSync(join(jest, "package.json"), "utf8").replace("{", '{"type":"module",'),
    );
    const test = `import { Election, memoryBackend } from "conclave";
test("leads", async () => {
  const election = new Election({ name: "x", backend: memoryBackend() });
  const term = await election.campaign();
  expect(term.held).toBe(true);
  await election.close();
});\n`;
    writeFileSync(join(jest, "leads.test.js"), test);
    const { status, stderr } = spawnSync(process.execPath, [join(jest, "node_modules/jest/bin/jest.js")], {
      cwd: jest,
      encoding: "utf8",
      env: { ...process.env, NODE_OPTIONS: "--experimental-vm-modules" },
    });
    expect(status, stderr).toBe(0);
  });

  it("its example around any program stops one loop before the other begins", async () => {
    const runtime: Runtime = { name: "own", version: "", program: process.execPath, run: [] };
    const example = blocks("sh").find((block) => block.includes("exec ticker"))!;
    const home = mkdtempSync(join(folder, "home-"));
    const line = example.replace("npx conclave", "node_modules/.bin/conclave");
    const env = { HOME: home, XDG_STATE_HOME: "" };
    const first = start(runtime, ["bash", "-c", `exec ${line}`], env);
    await first.said(/tick under token/);
    const second = start(runtime, ["bash", "-c", `exec ${line}`], env);
    await second.said(/one machine|lives in|elections live/);
    first.child.kill("SIGKILL");
    await second.said(/tick under token/);
    const token = (text: string): bigint => BigInt(/tick under token (\d+)/.exec(text)![1]!);
    expect(token(second.text)).toBeGreaterThan(token(first.text));
  });
});

/** As somebody would write it by hand: `require`, and everything else in a function. */
function asCommonJs(script: string): string {
  const requires: string[] = [];
  const rest = script.replace(
    /^import (?:\* as )?(.*?) from ("[^"]+");.*$/gm,
    (_, names: string, from: string) => {
      requires.push(`const ${names.replaceAll(" as ", ": ")} = require(${from});`);
      return "";
    },
  );
  return `${requires.join("\n")}\nasync function main() {\n${rest.replace(/^export \{\};$/m, "")}\n}\nmain();\n`;
}

class Running {
  readonly child: ReturnType<typeof spawn>;
  readonly exit: Promise<number | null>;
  text = "";
  readonly #looks = new Set<() => void>();
  #ended = false;

  constructor(child: ReturnType<typeof spawn>) {
    this.child = child;
    for (const stream of [child.stdout!, child.stderr!])
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.text += text;
        for (const look of this.#looks) look();
      });
    this.exit = new Promise((resolve) =>
      child.once("close", (code) => {
        this.#ended = true;
        for (const look of this.#looks) look();
        resolve(code);
      }),
    );
  }

  said(fits: RegExp): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void): void => {
        clearTimeout(timer);
        this.#looks.delete(look);
        settle();
      };
      const fail = (what: string): void =>
        finish(() => reject(new Error(`${what} without ${String(fits)}:\n${this.text}`)));
      const look = (): void => {
        if (fits.test(this.text)) finish(resolve);
        else if (this.#ended) fail("it ended");
      };
      const timer = setTimeout(() => fail(`${LIMIT_MS} ms passed`), LIMIT_MS);
      this.#looks.add(look);
      look();
    });
  }
}
