/** The image of deploy/Dockerfile, built and run as three containers on one store. It takes minutes: CONCLAVE_LONG=1. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { freePorts } from "../support/free-ports.js";
import { EtcdServer, hasEtcd } from "../support/etcd-server.js";
import type { Container } from "./podman.js";
import { Podman, unable } from "./podman.js";

const why = unable() ?? (hasEtcd() ? undefined : "not installed: etcd");
if (why !== undefined) console.warn(`\nThe image was NOT built and run: ${why}.\n`);

/** The program itself as process 1, without the image's tini. */
const WITHOUT_TINI = ["--entrypoint", '["node","/app/dist/cli/main.js"]'];

describe.skipIf(why !== undefined)("the image", { timeout: 120_000 }, () => {
  let podman: Podman;
  let etcd: EtcdServer;
  let store: readonly string[];
  let running: Container[] = [];
  let count = 0;

  beforeAll(async () => {
    podman = new Podman();
    etcd = await EtcdServer.start();
    store = ["-e", `CONCLAVE_BACKEND=etcd://${etcd.endpoints.join(",")}`];
    await podman.build();
  }, 600_000);

  afterEach(async () => {
    await Promise.all(running.map((container) => container.end()));
    running = [];
  });

  afterAll(async () => {
    await podman?.[Symbol.asyncDispose]();
    await etcd?.stop();
  }, 120_000);

  const start = (args: readonly string[], options: readonly string[] = []): Container => {
    const container = podman.start(`c${count++}`, args, [...store, ...options]);
    running.push(container);
    return container;
  };
  const three = (args: readonly string[], options: readonly string[] = []): Container[] =>
    Array.from({ length: 3 }, () => start(args, options));
  /** The container that is elected first from now on, and the others. */
  const elected = async (among: readonly Container[]): Promise<[Container, Container[]]> => {
    const from = among.map(({ out, err }) => Math.min(out.length, err.length));
    const leader = await Promise.any(
      among.map(async (container, i) => {
        await container.line(/"event":"elected"/, from[i]);
        return container;
      }),
    );
    return [leader, among.filter((container) => container !== leader)];
  };

  it("is built with a health check, without root and without a compiler", async () => {
    const [{ User, Healthcheck }] = JSON.parse(
      await podman.podman("image", "inspect", "localhost/conclave:1"),
    ) as [{ User: string; Healthcheck: { Test: string[] } }];
    expect(User).toBe("1000:1000");
    expect(Healthcheck.Test).toEqual(["CMD", "node", "/app/healthcheck.mjs"]);
    const candidate = start(["run", "x", "--log", "json"]);
    await candidate.line(/"event":"elected"/);
    expect(await candidate.exec("sh", "-c", "id -u; ls /app/node_modules")).toMatch(
      /^1000\n(?!.*typescript)[\s\S]*croner/,
    );
    await expect(candidate.exec("sh", "-c", "touch /app/x")).rejects.toThrow(/Read-only file system/);
  });

  it.each([
    ["tini as process 1", []],
    ["the program itself as process 1", WITHOUT_TINI],
    ["no writable directory at all", ["--read-only-tmpfs=false"]],
  ])(
    "three containers, one leads; stopped it hands over at once, killed it is replaced: %s",
    async (_, options) => {
      const all = three(["run", "x", "--ttl", "3s", "--log", "json"], options);
      const [first, waiting] = await elected(all);
      expect(await first.ill(), first.said).toBeUndefined();
      const asked = performance.now();
      const [[second, last]] = await Promise.all([elected(waiting), first.stop()]);
      // Not `docker stop`'s patience, nor the ttl's.
      expect(performance.now() - asked).toBeLessThan(8_000);
      expect(await first.exit).toBe(0);
      expect(first.said).toMatch(/"event":"ended".*"reason":"(?:resigned|closed)"/);
      const [[third]] = await Promise.all([elected(last), second.kill()]);
      expect(await second.exit).toBe(137);
      const tokens = [first, second, third].map(({ said }) =>
        BigInt(/"elected".*?"token":"(\d+)"/.exec(said)![1]!),
      );
      expect(tokens[0]! < tokens[1]! && tokens[1]! < tokens[2]!).toBe(true);
    },
  );

  it("is unhealthy while it is stopped, and healthy again when it goes on", async () => {
    const candidate = start(["run", "x", "--log", "json"]);
    await candidate.line(/"event":"elected"/);
    expect(await candidate.ill()).toBeUndefined();
    await candidate.exec("node", "-e", STOP);
    expect(await candidate.ill()).toBe("conclave is stopped");
    await candidate.exec("node", "-e", STOP.replace("SIGSTOP", "SIGCONT"));
    expect(await candidate.ill()).toBeUndefined();
  });

  it("runs a cron command on one of three, once for each scheduled time", async () => {
    const command = ["sh", "-c", 'echo "ran $CONCLAVE_SCHEDULED_AT under $CONCLAVE_TOKEN as $(id -u)"'];
    const all = three(["cron", "* * * * * *", "bill", "--log", "json", "--", ...command]);
    const ran = (): string[] => all.flatMap(({ out }) => out.filter((line) => line.startsWith("ran ")));
    const [leader, others] = await elected(all);
    await leader.line(/^ran .*Z under \d+ as 1000$/);
    expect(await leader.stop()).toBe(0);
    await Promise.any(others.map((other) => other.line(/^ran /)));
    const times = ran().map((line) => line.split(" ")[1]);
    expect(times.length).toBeGreaterThanOrEqual(2);
    expect(new Set(times).size).toBe(times.length);
  });

  it.each([["etcd"], ["a store that cannot be reached"]])(
    "serves metrics and its health on %s",
    async (kind) => {
      const [port] = await freePorts(2);
      const away = kind === "etcd" ? [] : ["-e", "CONCLAVE_BACKEND=etcd://127.0.0.1:1"];
      const sidecar = start(["serve", "x", "--listen", `127.0.0.1:${port}`], away);
      await sidecar.line(/listening on/);
      if (kind === "etcd") await sidecar.line(/ELECTED/);
      expect(await sidecar.ill(), "an outage of the store is no illness of the program").toBeUndefined();
      const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      expect(metrics).toMatch(new RegExp(`^conclave_leading\\{.*\\} ${kind === "etcd" ? 1 : 0}$`, "m"));
    },
  );

  it("refuses to elect one leader for each container when no store is named", async () => {
    const cron = start(["cron", "* * * * *", "x", "--", "true"], ["-e", "CONCLAVE_BACKEND="]);
    expect(await cron.exit).toBe(2);
    expect(cron.said).toMatch(/no store was named/);
  });
});

/** Sent from beside it: the oldest process that runs the command line. */
const STOP = `
  const { readdirSync, readFileSync } = require("node:fs");
  const pid = readdirSync("/proc").map(Number).filter(Boolean).sort((a, b) => a - b)
    .find((pid) => /^[^\\0]*node\\0[^\\0]*main\\.js/.test(readFileSync("/proc/" + pid + "/cmdline", "utf8")));
  process.kill(pid, "SIGSTOP");`;
