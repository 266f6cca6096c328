/** What a term and a watch on Kubernetes undo, and in which order. On a virtual clock, without a server. */
import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { beforeEach, describe, expect, it } from "vitest";
import type { Hold } from "../../src/seam/backend.js";
import type { LeaseObject } from "../../src/backends/kubernetes/lease.js";
import { parseLease } from "../../src/backends/kubernetes/lease.js";
import { LeaseWatchAndLabel } from "../../src/backends/kubernetes/lease-watch-and-label.js";
import { Watcher } from "../../src/backends/kubernetes/watcher.js";
import { ConclaveError } from "../../src/kit/errors.js";
import { readClocks } from "../../src/kit/clock.js";
import { SetClock } from "../support/set-clock.js";

const ATTEMPT_MS = 2_000;
const never = new AbortController().signal;

let clock: SetClock;
beforeEach(() => {
  clock = new SetClock();
});

describe("a term", () => {
  let happened: string[];
  let wake: () => void;
  let watched: AbortSignal | undefined;
  /** What a read finds: the holder and the version. */
  let found: { holder: string | null; version: bigint } | null;
  let renewed: "lost" | undefined;
  let labelled: Promise<void>;
  let unlabelled: () => Promise<void>;

  beforeEach(() => {
    [happened, wake, watched, renewed] = [[], () => {}, undefined, undefined];
    found = { holder: "me", version: 8n };
    labelled = Promise.resolve();
    unlabelled = async () => {};
  });

  function enter(): Hold {
    const held = new LeaseWatchAndLabel({
      ...{ clock, election: "e", candidate: "me", attemptMs: ATTEMPT_MS },
      store: {
        watch: (_, told, { signal }) => {
          [wake, watched] = [told, signal];
          return new Promise(() => {});
        },
        read: async () => {
          happened.push("read");
          if (found === null) return null;
          const { holder, version } = found;
          return { version, record: { holder, ttlMs: 1, value: "", since: 1, token: null } };
        },
      },
      label: {
        add: async () => {
          happened.push("add");
          await labelled;
        },
        remove: async () => {
          happened.push("remove");
          await unlabelled();
        },
      },
      left: () => void happened.push("left"),
    });
    const extended = async (): Promise<"lost" | { asked: Hold["asked"] }> =>
      renewed ?? { asked: readClocks(clock) };
    return held.enter({
      ...{ token: 8n, asked: readClocks(clock), ttlMs: 15_000, renew: extended, proclaim: extended },
      release: async () => void happened.push("release"),
    });
  }

  it("is released after its label was removed, and that after it was set", async () => {
    let set = (): void => {};
    labelled = new Promise((resolve) => (set = resolve));
    const hold = enter();
    const releasing = hold.release({ signal: never });
    await clock.advance(0);
    expect(happened).toEqual(["add"]);
    set();
    await releasing;
    expect(happened).toEqual(["add", "remove", "left", "release"]);
    expect(watched?.aborted).toBe(true);
  });

  it("is released though its label cannot be removed, after half of the time for it", async () => {
    unlabelled = () => new Promise(() => {});
    const releasing = enter().release({ signal: never });
    await clock.advance(ATTEMPT_MS / 2 - 1);
    expect(happened).not.toContain("release");
    await clock.advance(1);
    await clock.advance(60); // what was told to end gets a moment
    await releasing;
    expect(happened).toEqual(["add", "remove", "left", "release"]);
    expect(clock.timers).toBe(0);
  });

  it.each(["renew", "proclaim"] as const)(
    "that is lost by %s stops watching, and its label goes",
    async (call) => {
      const hold = enter();
      const ask = (): Promise<unknown> =>
        call === "renew" ? hold.renew({ signal: never }) : hold.proclaim("v", { signal: never });
      await ask();
      expect(happened).toEqual(["add"]);
      renewed = "lost";
      expect(await ask()).toBe("lost");
      await clock.advance(0);
      expect(happened).toEqual(["add", "remove", "left"]);
      expect(watched?.aborted).toBe(true);
    },
  );

  it.each([
    ["ours", { holder: "me", version: 9n }, false],
    ["another's, read before ours was written", { holder: "other", version: 7n }, false],
    ["another's, in the version that we wrote", { holder: "other", version: 8n }, false],
    ["another's, newer", { holder: "other", version: 9n }, true],
    ["given back by hand", { holder: null, version: 9n }, true],
    ["gone", null, true],
  ] as const)("whose Lease is %s is told so by the watch", async (_, lease, lost) => {
    const hold = enter();
    found = lease;
    wake();
    await clock.advance(0);
    expect(hold.revoked?.aborted).toBe(lost);
    expect(happened).toEqual(lost ? ["add", "read", "remove", "left"] : ["add", "read"]);
    wake();
    await clock.advance(0);
    expect(happened.filter((each) => each === "read")).toHaveLength(lost ? 1 : 2);
  });
});

describe("a watch", () => {
  let opened: { response: PassThrough; signal: AbortSignal; since: bigint | undefined }[];
  let reads: number;
  let open: () => Promise<unknown>;
  let known: bigint | undefined;
  let watcher: Watcher;
  let present: LeaseObject[];

  const lease = (version: number): object => ({
    metadata: { name: "e", namespace: "ns", uid: "u", resourceVersion: String(version) },
    spec: {},
  });

  beforeEach(() => {
    [opened, reads, known, present] = [[], 0, undefined, []];
    open = async () => {};
    clock.draw = 0.5; // pauses are what they are called
    watcher = new Watcher(
      clock,
      {
        namespace: "ns",
        get: async () => {
          reads++;
          return parseLease(lease(5));
        },
        watch: async (_, since, __, signal) => {
          const response = new PassThrough();
          signal.addEventListener("abort", () => response.destroy(), { once: true });
          opened.push({ response, signal, since });
          await open();
          return response as unknown as IncomingMessage;
        },
      },
      "e",
      { present: (each) => void present.push(each), absent: () => {}, known: () => known },
    );
  });

  const say = (type: string, object: object): void =>
    void opened.at(-1)!.response.write(`${JSON.stringify({ type, object })}\n`);
  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn++) await clock.advance(0);
  };

  it("begins with a read, wakes its subscriber for it, and leaves nothing when it is stopped", async () => {
    let woken = 0;
    watcher.subscribe(() => void woken++);
    await turns();
    expect([reads, woken, opened[0]?.since, clock.timers]).toEqual([1, 1, 5n, 0]);
    say("MODIFIED", lease(6));
    await turns();
    expect([woken, present.at(-1)?.version]).toEqual([2, 6n]);
    watcher.stop();
    await turns();
    expect([opened[0]!.signal.aborted, clock.timers]).toEqual([true, 0]);
    await clock.advance(60_000);
    expect(opened).toHaveLength(1);
  });

  it("that ended has its connection closed, and another follows it from what is known", async () => {
    known = 7n;
    watcher.subscribe(() => {});
    await turns();
    say("MODIFIED", lease(8));
    await turns();
    opened[0]!.response.end();
    await turns();
    expect([opened[0]!.signal.aborted, watcher.silentMs]).toEqual([true, undefined]);
    await clock.advance(99);
    expect(opened).toHaveLength(1);
    await clock.advance(1);
    expect([opened.length, opened[1]?.since, reads]).toEqual([2, 7n, 0]);
    watcher.stop();
    await turns();
  });

  it("that brings nothing is opened again later each time, and soon again once one brought something", async () => {
    known = 7n;
    watcher.subscribe(() => {});
    await turns();
    const pauses: number[] = [];
    const next = async (): Promise<void> => {
      const [before, since] = [opened.length, clock.now()];
      opened.at(-1)!.response.end();
      await turns();
      while (opened.length === before) await clock.advance(50);
      await turns();
      pauses.push(clock.now() - since);
    };
    for (let i = 0; i < 4; i++) await next();
    say("MODIFIED", lease(8));
    await turns();
    await next();
    expect(pauses[3]).toBeGreaterThan(pauses[1]!);
    expect(pauses[4]).toBe(100);
    watcher.stop();
    await turns();
  });

  it("that may not be opened is not tried again for half a minute; after a passing fault it soon is", async () => {
    known = 7n;
    open = () => Promise.reject(new ConclaveError("forbidden", "no right to watch"));
    watcher.subscribe(() => {});
    await clock.advance(29_999);
    expect(opened).toHaveLength(1);
    open = () => Promise.reject(new ConclaveError("unavailable", "away"));
    await clock.advance(1);
    expect(opened).toHaveLength(2);
    await clock.advance(2_000);
    expect(opened.length).toBeGreaterThan(2);
    watcher.stop();
    await turns();
  });

  it("that is not opened in time is given up", async () => {
    known = 7n;
    open = () =>
      new Promise((_, reject) =>
        opened.at(-1)!.signal.addEventListener("abort", () => reject(new Error("cut"))),
      );
    watcher.subscribe(() => {});
    await clock.advance(4_999);
    expect(opened[0]!.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(opened[0]!.signal.aborted).toBe(true);
    watcher.stop();
    await turns();
    expect(clock.timers).toBe(0);
  });
});
