/** No store was named. On one machine files will do; where replicas have files of their own, that must not pass in silence. */
import { describe, expect, it, vi } from "vitest";
import { separateReplicas } from "../../src/backends/default-store.js";
import { memoryBackend, openBackend, openElection } from "../../src/index.js";
import type { Logger } from "../../src/index.js";
import { conclave, inProcess, scratch } from "./process.js";

const nothing = (): boolean => false;

async function inPod<T>(act: () => Promise<T>): Promise<T> {
  vi.stubEnv("KUBERNETES_SERVICE_HOST", "10.0.0.1");
  try {
    return await act();
  } finally {
    vi.unstubAllEnvs();
  }
}

function recorded(): { readonly lines: string[]; readonly logger: Logger } {
  const lines: string[] = [];
  const say =
    (level: string) =>
    (...said: unknown[]): void => {
      lines.push(`${level}: ${said.find((part) => typeof part === "string") as string}`);
    };
  return {
    lines,
    logger: { debug: say("debug"), info: say("info"), warn: say("warn"), error: say("error") },
  };
}

describe("signs of replicas elsewhere", () => {
  it.each([
    ["KUBERNETES_SERVICE_HOST", /Kubernetes pod/],
    ["ECS_CONTAINER_METADATA_URI_V4", /ECS task/],
    ["FLY_MACHINE_ID", /Fly machine/],
    ["container", /a container/],
  ])("%s", (variable, says) => {
    expect(separateReplicas({ env: { [variable]: "x" }, exists: nothing })).toMatch(says);
    expect(separateReplicas({ env: { [variable]: "" }, exists: nothing })).toBeUndefined();
  });

  it("files of container engines, and none on a plain machine", () => {
    expect(separateReplicas({ env: {}, exists: (path) => path === "/.dockerenv" })).toMatch(/container/);
    expect(separateReplicas({ env: {}, exists: (path) => path === "/run/.containerenv" })).toMatch(
      /container/,
    );
    expect(separateReplicas({ env: {}, exists: nothing })).toBeUndefined();
  });
});

describe("without a store, in a pod", () => {
  it.each([
    [["exec", "x", "--", "true"]],
    [["lock", "x", "--", "true"]],
    [["cron", "* * * * *", "x", "--", "true"]],
  ])("%j refuses, and says how to go on", async (args) => {
    const { code, out, err } = await inPod(() => inProcess(args));
    expect(code).toBe(2);
    expect(out).toBe("");
    expect(err).toMatch(
      /no store was named, and this is a Kubernetes pod \(KUBERNETES_SERVICE_HOST is set\)/,
    );
    expect(err).toMatch(/--backend URL or CONCLAVE_BACKEND/);
    expect(err).toMatch(/if one machine is meant, say so with --backend file:$/);
  });

  it("does as it is told once a store is named", async () => {
    const { code, err } = await inPod(() =>
      conclave(["lock", "x", "--lock-dir", scratch(), "--", "true"], { KUBERNETES_SERVICE_HOST: "x" }),
    );
    expect([code, err]).toEqual([0, expect.stringMatching(/^conclave: lock "x" lives in /)]);
  });

  it("only asking who leads warns", async () => {
    const { code, err } = await inPod(() => inProcess(["leader", `nobody-${process.pid}`]));
    expect(code).toBe(1);
    expect(err).toMatch(/WARNING: no store was named, and this is a Kubernetes pod/);
  });

  it("the library warns once: the logger, or else the process; and not if files were named", async () => {
    const warned: Error[] = [];
    const hear = (warning: Error): void => void warned.push(warning);
    process.on("warning", hear);
    try {
      await inPod(async () => {
        const { lines, logger } = recorded();
        await using named = await openElection({ name: "x", backend: "file:", logger });
        expect([named.name, lines]).toEqual(["x", []]);
        await using first = await openElection({ name: "x", logger });
        await using second = await openElection({ name: "y", logger });
        expect([first.name, second.name]).toEqual(["x", "y"]);
        expect(lines).toEqual([
          expect.stringMatching(/^warn: no store was named, and this is a Kubernetes pod/),
        ]);
      });
      vi.stubEnv("NOMAD_ALLOC_ID", "1");
      await using _backend = await openBackend();
      await vi.waitFor(() => expect(warned).toHaveLength(1));
      expect(warned[0]).toMatchObject({ name: "ConclaveWarning", code: "CONCLAVE_ONE_MACHINE" });
      expect(warned[0]!.message).toMatch(/Nomad allocation.*backend: "file:" if one machine is meant/);
    } finally {
      vi.unstubAllEnvs();
      process.off("warning", hear);
    }
  });
});

describe("the library's logger", () => {
  it("says which store is used when a candidate campaigns", async () => {
    const { lines, logger } = recorded();
    await using election = await openElection({ name: "x", backend: "memory:said", logger });
    await using _term = await election.campaign();
    expect(lines[0]).toBe('info: election "x": campaigning on memory, memory:said');
  });

  it("warns of one name on two stores, and not of two objects of one", async () => {
    const { lines, logger } = recorded();
    const warnings = (): string[] => lines.filter((line) => line.startsWith("warn"));
    const options = { name: "twice", logger };
    const one = await openElection({ ...options, backend: "memory:one" });
    await using first = await one.campaign();
    await using same = await openElection({ ...options, backend: "memory:one" });
    expect([first.held, await same.tryCampaign()]).toEqual([true, null]);
    expect(warnings()).toEqual([]);
    await using unknown = await openElection({ ...options, backend: memoryBackend() });
    await unknown.tryCampaign();
    expect(warnings()).toEqual([]);
    await using other = await openElection({ ...options, backend: "memory:two" });
    await other.tryCampaign();
    expect(warnings()).toEqual([
      expect.stringMatching(/two stores \(memory, memory:one; memory, memory:two\): they do not compete/),
    ]);
    await one.close();
    await using later = await openElection({ ...options, backend: "memory:three" });
    await later.tryCampaign();
    expect(warnings()).toHaveLength(1);
  });
});
