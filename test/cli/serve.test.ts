/** `conclave serve` as a real process: what it answers, and what it never answers. */
import { cpSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { WireElection } from "../../src/sidecar/index.js";
import { ask, flood, post, takenPort, until } from "./http.js";
import { Cli, inProcess, scratch } from "./process.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TOKEN = "a-secret-of-32-characters-exactly";

interface Serving {
  readonly cli: Cli;
  readonly url: string;
  readonly at: string;
  readonly directory: string;
}

async function serve(flags: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Serving> {
  const directory = scratch();
  const common = ["--lock-dir", directory, "--listen", "127.0.0.1:0", "--id", "side", "--ttl", "1500ms"];
  const cli = new Cli(["serve", "jobs", ...common, ...flags], env);
  const url = /(http:\S+)/.exec(await cli.line(/^listening on/))![1]!;
  return { cli, url, at: `${url}/elections/jobs`, directory };
}

const leads = async ({ at }: Serving): Promise<boolean> => (await ask(`${at}/leading`)).status === 200;

async function state({ at }: Serving): Promise<WireElection> {
  return JSON.parse((await ask(at)).body) as WireElection;
}

describe("conclave serve", () => {
  it("stands, answers, counts, resigns when told, and stops in good order", async () => {
    const serving = await serve(["--ui"], { CONCLAVE_SIDECAR_TOKEN: TOKEN });
    const { cli, url, at } = serving;
    await until("it leads", () => leads(serving));
    expect(await state(serving)).toMatchObject({ election: "jobs", leading: true, ttlMs: 1500 });
    expect(JSON.parse((await ask(url)).body)).toEqual({ name: expect.stringMatching(/^side-/) });
    expect((await ask(`${url}/healthz`)).status).toBe(200);
    expect((await ask(`${url}/metrics`)).body).toMatch(
      /conclave_leading\{election="jobs",backend="file"\} 1/,
    );
    const page = await ask(`${url}/ui`);
    expect(page.headers["content-type"]).toMatch(/^text\/html/);
    expect(page.headers["content-security-policy"]).toContain("script-src 'self'");
    // Only with the token, and not for pages of other origins.
    const { token: before } = (await state(serving)).leader!;
    expect((await post(`${at}/resign`)).status).toBe(401);
    expect((await post(`${at}/resign`, TOKEN, { origin: "http://evil.example" })).status).toBe(403);
    expect((await post(`${at}/resign`, TOKEN, { host: "evil.example" })).status).toBe(403);
    expect((await post(`${at}/resign`, TOKEN)).status).toBe(200);
    await until("another term", async () => {
      const { leader } = await state(serving);
      return leader !== null && BigInt(leader.token) > BigInt(before);
    });
    cli.kill("SIGTERM");
    expect(await cli.exit).toEqual({ code: 0, signal: null });
    const said = cli.out.join("\n");
    expect(said).toMatch(/RESIGNED/);
    expect(said).not.toContain(TOKEN);
    expect(cli.err).toEqual([]);
  });

  it("frozen for three ttls, it does not say what was true before", async () => {
    const serving = await serve();
    await until("it leads", () => leads(serving));
    const other = new Cli([
      ...["run", "jobs", "--lock-dir", serving.directory, "--ttl", "1500ms"],
      ...["--id", "other", "--log", "json"],
    ]);
    await other.event("leader", (who) => who?.startsWith("side-") ?? false);
    serving.cli.kill("SIGSTOP");
    // Accepted by the kernel while it is frozen, answered when it wakes: first of all it has to look at the clock.
    const questions = Array.from({ length: 40 }, (_, index) =>
      index % 2 === 0 ? ask(serving.at) : ask(`${serving.at}/leading`),
    );
    await other.event("elected");
    await new Promise((resolve) => setTimeout(resolve, 3_500)); // with the wait before: three ttls
    serving.cli.kill("SIGCONT");
    for (const { status, body } of await Promise.all(questions)) {
      const answer = JSON.parse(body) as { leading?: boolean };
      expect(answer.leading ?? false, body).toBe(false);
      if (status === 200) expect((JSON.parse(body) as WireElection).leader?.candidate).toMatch(/^other-/);
    }
    await until("it knows the new leader", async () => {
      const { status, body } = await ask(serving.at);
      return (
        status === 200 && (JSON.parse(body) as WireElection).leader?.candidate.startsWith("other-") === true
      );
    });
  });

  it("cut off from its store, it leads no longer than its last answer said", async () => {
    const serving = await serve();
    await until("it leads", () => leads(serving));
    const shelf = join(serving.directory, "elections");
    renameSync(shelf, `${shelf}.away`);
    writeFileSync(shelf, "not a directory");
    const cutAt = performance.now();
    let unhealthy = false;
    let lastLed = cutAt;
    // Every answer is checked against the promise of the last one: valid for so long, from when it was asked, in
    // whole milliseconds rounded down: two answers in the last millisecond may both say 0.
    let validUntil = Number.POSITIVE_INFINITY;
    for (;;) {
      const asked = performance.now();
      const { status, body } = await ask(serving.at);
      const answer = status === 200 ? (JSON.parse(body) as WireElection) : null;
      if (answer?.leading !== true) break;
      expect(asked).toBeLessThan(validUntil);
      validUntil = performance.now() + answer.validForMs + 1;
      lastLed = asked;
      unhealthy ||= (await ask(`${serving.url}/healthz`)).status === 503;
      expect(asked - cutAt).toBeLessThan(1_500 + 500);
    }
    expect(unhealthy).toBe(true);
    expect(lastLed - cutAt).toBeLessThan(1_500);
    expect((await ask(`${serving.at}/leading`)).status).toBe(503);
    await until("nothing is known any more", async () => (await ask(`${serving.url}/readyz`)).status === 503);
    expect((await ask(serving.at)).status).toBe(503);
    rmSync(shelf);
    renameSync(`${shelf}.away`, shelf);
    await until("it leads again", () => leads(serving));
  });

  it("answers a thousand at once, drops the slow, and keeps nothing of them", async () => {
    // A ttl that a busy machine does not shake: who leads is not the question here.
    const serving = await serve(["--ttl", "20s"]);
    await until("it leads", () => leads(serving));
    const handles = (): number => readdirSync(`/proc/${serving.cli.child.pid}/fd`).length;
    const before = handles();
    // They begin a request and never finish it.
    const slow = await Promise.all(Array.from({ length: 50 }, () => dawdle(serving.url)));
    const answers = await flood(serving.at, 1_000);
    for (const { status, body } of answers) {
      expect(status).toBe(200);
      expect(JSON.parse(body)).toMatchObject({ leading: true });
    }
    await Promise.all(slow.map(({ closed }) => closed));
    await until("every connection is gone", () => handles() <= before + 2);
  });

  it("refuses what would be unsafe or cannot be meant", async () => {
    const directory = scratch();
    const flags = ["--lock-dir", join(directory, "elections")];
    const short = join(directory, "token");
    writeFileSync(short, "short\n");
    const refusals: [string[], RegExp][] = [
      [["--listen", "0.0.0.0:0"], /needs a token/],
      [["--listen", "127.0.0.1:0", "--token-file", short], /at least 16/],
      [["--token-file", "/nowhere/at/all"], /--token-file cannot be read/],
      [["--listen", "somewhere"], /127\.0\.0\.1:4040/],
      [["--listen", "127.0.0.1:70000"], /127\.0\.0\.1:4040/],
    ];
    for (const [bad, message] of refusals) {
      const { code, err } = await inProcess(["serve", "jobs", ...bad, ...flags]);
      expect(code, bad.join(" ")).toBe(2);
      expect(err).toMatch(message);
    }
    const twice = await inProcess(["serve", "jobs", "jobs", ...flags]);
    expect(twice).toMatchObject({ code: 2, err: expect.stringMatching(/named twice/) });
    const taken = await takenPort();
    const { code, err } = await inProcess(["serve", "jobs", "--listen", String(taken.port), ...flags]);
    await taken.free();
    expect(code).toBe(2);
    expect(err).toMatch(/cannot listen on 127\.0\.0\.1, port \d+: EADDRINUSE/);
  });

  it("says so when prom-client is not there, and does the rest", async () => {
    // The package as it is installed without its optional peer.
    const home = join(scratch(), "conclave");
    mkdirSync(join(home, "node_modules"), { recursive: true });
    cpSync(join(ROOT, "dist"), join(home, "dist"), { recursive: true });
    cpSync(join(ROOT, "package.json"), join(home, "package.json"));
    symlinkSync(join(ROOT, "node_modules/commander"), join(home, "node_modules/commander"));
    const main = join(home, "dist/cli/main.js");
    const flags = ["--lock-dir", scratch(), "--listen", "127.0.0.1:0"];
    const cli = new Cli(["serve", "jobs", ...flags], {}, main);
    await cli.line(/metrics are off: prom-client is not installed/);
    const url = /(http:\S+)/.exec(await cli.line(/^listening on/))![1]!;
    expect((await ask(`${url}/metrics`)).status).toBe(404);
    await until("it leads", async () => (await ask(`${url}/elections/jobs/leading`)).status === 200);
    cli.kill("SIGINT");
    expect((await cli.exit).code).toBe(0);
  });
});

/** A client that sends half a request and waits. */
function dawdle(url: string): Promise<{ socket: Socket; closed: Promise<void> }> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => {
      socket.write("GET /elections HTTP/1.1\r\nhost: loc");
      resolve({ socket, closed });
    });
    socket.once("error", reject);
    const closed = new Promise<void>((done) => socket.once("close", () => done()));
    socket.on("error", () => {});
    socket.resume();
  });
}
