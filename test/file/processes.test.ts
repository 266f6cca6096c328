import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import type { Host, ProcessTable } from "../../src/backends/file/processes.js";
import { parseHost, ProcessRule } from "../../src/backends/file/processes.js";
import { open, storeIn, tempDirectory } from "./support.js";

interface World {
  pid?: number;
  self?: string;
  boot?: string;
  pidNs?: string;
  timeNs?: string;
  /** Start times by pid. */
  running?: Record<number, string>;
  probe?: (pid: number) => void;
}

function failing(code: string): never {
  throw Object.assign(new Error(code), { code });
}

function table(world: World): ProcessTable {
  const { pid = 100, self = String(pid), boot = "boot-1\n", pidNs = "pid:[1]", timeNs = "time:[1]" } = world;
  const running = world.running ?? { 100: "5000", 200: "6000", 201: "6001" };
  return {
    pid,
    file(path) {
      if (path === "/proc/sys/kernel/random/boot_id") return boot;
      const start = running[Number(path.split("/")[2])];
      return start === undefined
        ? failing("ENOENT")
        : `1 (a) b (c) R 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 ${start} 0 0`;
    },
    target: (path) => (path === "/proc/self" ? self : path.endsWith("pid") ? pidNs : timeNs),
    probe: world.probe ?? ((pid) => (pid in running ? undefined : failing("ESRCH"))),
  };
}

const rule = (world: World = {}, others: number[] = []) => new ProcessRule(() => others, table(world));

/** A record written by process 200, seen from process 100. */
function written(world: World = {}, others: number[] = []): Host {
  return rule({ ...world, pid: 200 }, others).host()!;
}

describe("the dead-process rule", () => {
  it("lists this process and those that act for it, with their start times", () => {
    expect(written({}, [201])).toEqual({
      bootId: "boot-1",
      pidNs: "pid:[1]",
      timeNs: "time:[1]",
      processes: [
        { pid: 200, startTime: "6000" },
        { pid: 201, startTime: "6001" },
      ],
    });
  });

  it("says dead if there is no such process", () => {
    expect(rule({ running: { 100: "5000" } }).dead(written())).toBe(true);
  });

  it("says dead if the pid has gone to another", () => {
    expect(rule({ running: { 100: "5000", 200: "9999" } }).dead(written())).toBe(true);
  });

  it("says nothing while it runs, also under another user", () => {
    expect(rule().dead(written())).toBe(false);
    expect(rule({ probe: () => failing("EPERM") }).dead(written())).toBe(false);
  });

  it("wants every listed process dead", () => {
    const host = written({}, [201]);
    expect(rule({ running: { 100: "5000", 201: "6001" } }).dead(host)).toBe(false);
    expect(rule({ running: { 100: "5000", 200: "6000" } }).dead(host)).toBe(false);
    expect(rule({ running: { 100: "5000" } }).dead(host)).toBe(true);
  });

  it.each<[string, World]>([
    ["another boot", { boot: "boot-2" }],
    ["another pid namespace", { pidNs: "pid:[2]" }],
    ["another time namespace", { timeNs: "time:[2]" }],
    ["a /proc of another pid namespace", { self: "7" }],
    ["no boot id", { boot: "\n" }],
  ])("is silent under %s", (_, world) => {
    expect(rule({ ...world, running: { 100: "5000" } }).dead(written())).toBe(false);
  });

  it("is silent when the system is: hidden /proc, odd errors, no list", () => {
    expect(rule({ running: { 100: "5000" }, probe: () => failing("EPERM") }).dead(written())).toBe(false);
    expect(rule({ running: { 100: "5000" }, probe: () => failing("EINVAL") }).dead(written())).toBe(false);
    expect(rule().dead(undefined)).toBe(false);
    expect(rule().dead({ ...written(), processes: [] })).toBe(false);
  });

  it("is not used for a record that must list a process which is not there, or is none", () => {
    for (const pid of [999, 0, -1, 1.5, Number.NaN, 2 ** 31]) expect(rule({}, [pid]).host()).toBeUndefined();
  });

  it("is off without /proc", () => {
    const bare = new ProcessRule(() => [], { ...table({}), target: () => failing("ENOENT") });
    expect(bare.usable).toBe(false);
    expect(bare.host()).toBeUndefined();
    expect(bare.dead(written())).toBe(false);
  });

  it("believes only well-formed lists", () => {
    const good = written();
    expect(parseHost(structuredClone(good))).toEqual(good);
    const bad: unknown[] = [
      null,
      5,
      {},
      { ...good, bootId: "" },
      { ...good, pidNs: 7 },
      { ...good, timeNs: "x".repeat(1000) },
      { ...good, processes: {} },
      { ...good, processes: [] },
      { ...good, processes: [null] },
      { ...good, processes: [{ pid: 0, startTime: "1" }] },
      { ...good, processes: [{ pid: -5, startTime: "1" }] },
      { ...good, processes: [{ pid: "200", startTime: "1" }] },
      { ...good, processes: [{ pid: 200, startTime: 1 }] },
      { ...good, processes: [{ pid: 200, startTime: "soon" }] },
      { ...good, processes: Array.from({ length: 65 }, () => ({ pid: 200, startTime: "1" })) },
    ];
    for (const value of bad) expect(parseHost(value)).toBeUndefined();
  });
});

describe("the store", () => {
  it("answers for the version it read last, by the rule", async () => {
    const root = await tempDirectory();
    const author = storeIn(root, { processes: rule({ pid: 200 }) });
    const { version } = (await author.write("a", null, "x", open))!;
    const alive = storeIn(root, { processes: rule() });
    const dead = storeIn(root, { processes: rule({ running: { 100: "5000" } }) });
    expect(await dead.abandoned!("a", version, open)).toBe(false); // not read yet
    for (const store of [alive, dead]) await store.read("a", open);
    expect(await alive.abandoned!("a", version, open)).toBe(false);
    expect(await dead.abandoned!("a", version, open)).toBe(true);
    expect(await dead.abandoned!("a", version - 1n, open)).toBe(false);
    expect(storeIn(root).abandoned).toBeUndefined();
  });
});

describe.runIf(process.platform === "linux")("on this machine", () => {
  it("sees a child live and die", async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    await once(child, "spawn");
    const here = new ProcessRule(() => [child.pid!]);
    expect(here.usable).toBe(true);
    const both = here.host()!;
    const host = { ...both, processes: both.processes.filter(({ pid }) => pid === child.pid) };
    expect(host.processes).toHaveLength(1);
    expect(here.dead(host)).toBe(false);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(here.dead(host)).toBe(true);
    expect(here.dead(both)).toBe(false);
  });
});
