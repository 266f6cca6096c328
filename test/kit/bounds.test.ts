/** Names, values and durations at their bounds, and the clocks of the system. */
import { hostname } from "node:os";
import { describe, expect, it } from "vitest";
import { memoryBackend } from "../../src/backends/memory/index.js";
import { readClocks, systemClock } from "../../src/kit/clock.js";
import { Deadline } from "../../src/law/deadline.js";
import { checkId, checkName, checkValue, defaultId } from "../../src/kit/names.js";
import { resolveTiming } from "../../src/law/timing.js";
import type { TimingOptions } from "../../src/api/options.js";
import { SetClock } from "../support/set-clock.js";

const DAY_MS = 86_400_000;

describe("a name", () => {
  it("has one to two hundred characters, an id one to a hundred", () => {
    for (const [check, longest] of [
      [checkName, 200],
      [checkId, 100],
    ] as const) {
      expect(check("x")).toBe("x");
      expect(check("x".repeat(longest))).toHaveLength(longest);
      expect(() => check("")).toThrow(/must not be empty/);
      expect(() => check("x".repeat(longest + 1))).toThrow(
        `${longest + 1} characters long; at most ${longest}`,
      );
    }
  });

  it.each(["\u0000", "\u001f", "\u007f", "\u009f", "\u2028", "\u2029"])(
    "has no control character: %j",
    (character) => {
      expect(() => checkName(`a${character}b`)).toThrow(/control character/);
    },
  );

  it.each([" ", "~", "\u00a0", "\u2027", "\u202a", "👑"])("may have %j", (character) => {
    expect(checkName(`a${character}b`)).toBe(`a${character}b`);
  });

  it.each(["\ud800", "a\ud800b", "\udc00", "a\udc00", "\udc00\ud800", "\ud83d\ud83d\udc51"])(
    "and a value are well-formed text: %j is not",
    (text) => {
      expect(() => checkName(text)).toThrow(/surrogate/);
      expect(() => checkValue(text)).toThrow(/surrogate/);
    },
  );

  it("is the host's if none is given, or a plain word if that one cannot be used", () => {
    expect(defaultId()).toBe(hostname());
    expect(defaultId("web-1")).toBe("web-1");
    expect(defaultId("x".repeat(100))).toHaveLength(100);
    for (const bad of ["", "x".repeat(101), "a\nb"]) expect(defaultId(bad)).toBe("candidate");
  });

  it("and a value are texts", () => {
    for (const other of [7, null, undefined, {}]) {
      expect(() => checkName(other)).toThrow(/name must be a string/);
      expect(() => checkId(other)).toThrow(/id must be a string/);
      expect(() => checkValue(other)).toThrow(/value must be a string/);
    }
  });

  it("of any length up to 16 KiB in UTF-8 is a value", () => {
    expect(checkValue("")).toBe("");
    expect(checkValue("x".repeat(16_384))).toHaveLength(16_384);
    expect(checkValue("a\nb")).toBe("a\nb");
    expect(() => checkValue("x".repeat(16_385))).toThrow("16385 bytes");
    expect(() => checkValue("ä".repeat(8_193))).toThrow("16386 bytes");
  });
});

describe("durations", () => {
  const { guarantees } = memoryBackend();
  const resolve = (options: TimingOptions): ReturnType<typeof resolveTiming> =>
    resolveTiming(options, {}, guarantees);

  it("follow from the ttl", () => {
    expect(resolve({ ttlMs: 3_000 })).toEqual({
      ttlMs: 3_000,
      renewMs: 1_000,
      marginMs: 450,
      attemptMs: 750,
      retryMs: 600,
      drainMs: 5_000,
      maxTermMs: undefined,
    });
    expect(resolve({ ttlMs: 60_000 })).toMatchObject({ marginMs: 9_000, retryMs: 2_000, attemptMs: 15_000 });
    expect(resolve({ ttlMs: 1_000 })).toMatchObject({ marginMs: 250, retryMs: 200 });
    expect(resolve({ ttlMs: 1_000 }).attemptMs).toBeCloseTo((750 - 1_000 / 3) / 2);
  });

  it("are taken as they are given, where they fit together", () => {
    const given = {
      ttlMs: 9_000,
      renewMs: 2_000,
      attemptMs: 1_000,
      retryMs: 700,
      drainMs: 0,
      maxTermMs: 100,
    };
    expect(resolve({ ...given, renewDeadlineMs: 4_000 })).toEqual({ ...given, marginMs: 5_000 });
  });

  it.each([
    ["ttlMs", 500, DAY_MS],
    ["retryMs", 10, DAY_MS],
    ["maxTermMs", 100, DAY_MS],
    ["drainMs", 0, DAY_MS],
  ] as const)("%s lies between %d and %d", (name, least, most) => {
    expect(resolve({ [name]: least })[name]).toBe(least);
    expect(resolve({ [name]: most })[name]).toBe(most);
    expect(() => resolve({ [name]: most + 1 })).toThrow(`${name} is ${most + 1}; it must lie between`);
    if (name !== "ttlMs")
      expect(() => resolve({ [name]: least - 0.5 })).toThrow(`${name} is ${least - 0.5}; it must`);
  });

  it("say what was wrong with them, rounded to a thousandth", () => {
    expect(() => resolve({ ttlMs: 99 })).toThrow("ttlMs is 99; it must lie between 100 and 86400000 ms");
    expect(() => resolve({ renewMs: 0.12345 })).toThrow("renewMs is 0.123; it must lie between 1 and");
    for (const bad of ["10", Number.NaN, Infinity])
      expect(() => resolve({ ["retryMs" as string]: bad })).toThrow(
        /retryMs must be a finite number of milliseconds/,
      );
    expect(() => resolve({ ["retryMs" as string]: "ten" })).toThrow('got "ten"');
  });

  it("leave a margin of five percent, and room for a renewal and two attempts, exactly", () => {
    expect(resolve({ ttlMs: 10_000, renewDeadlineMs: 9_500 }).marginMs).toBe(500);
    expect(() => resolve({ ttlMs: 10_000, renewDeadlineMs: 9_501 })).toThrow(/a margin of 499 ms/);
    const exact = { ttlMs: 10_000, renewDeadlineMs: 8_000, renewMs: 4_000, attemptMs: 2_000 };
    expect(resolve(exact)).toMatchObject({ renewMs: 4_000, attemptMs: 2_000 });
    expect(() => resolve({ ...exact, attemptMs: 2_000.1 })).toThrow(
      "(4000) + 2 x attemptMs (2000.1) = 8000.2",
    );
  });

  it("of the store hold with its own ttl, and only with that", () => {
    const own = { ttlMs: 15_000, renewMs: 2_000, renewDeadlineMs: 10_000, retryMs: 1_500 };
    const kept = (options: TimingOptions): ReturnType<typeof resolveTiming> =>
      resolveTiming(options, own, guarantees);
    expect(kept({})).toMatchObject({ ttlMs: 15_000, renewMs: 2_000, marginMs: 5_000, retryMs: 1_500 });
    expect(kept({ renewMs: 3_000 })).toMatchObject({ renewMs: 3_000, marginMs: 5_000, retryMs: 1_500 });
    expect(kept({ ttlMs: 15_001 })).toMatchObject({ renewMs: 15_001 / 3, retryMs: 2_000 });
    const coarse = { ...guarantees, ttl: { minMs: 2_000, stepMs: 1_000 } };
    expect(resolveTiming({ ttlMs: 2_000 }, {}, coarse).ttlMs).toBe(2_000);
    expect(() => resolveTiming({ ttlMs: 1_999 }, {}, coarse)).toThrow(/no lease shorter than 2000 ms/);
  });
});

describe("a deadline", () => {
  it("takes clocks that differ by a quarter of the margin, or by 25 ms, for equal", () => {
    for (const [marginMs, tolerated] of [
      [400, 100],
      [40, 25],
    ] as const) {
      const slept = (ms: number): number => {
        const clock = new SetClock();
        const deadline = new Deadline(clock, marginMs, readClocks(clock), 10_000);
        clock.suspend(ms);
        return deadline.remainingMs();
      };
      expect(slept(tolerated)).toBe(10_000 - marginMs);
      expect(slept(tolerated + 1)).toBe(-Infinity);
    }
  });

  it("is copied as it is, and the copy does not move with it", async () => {
    const clock = new SetClock();
    const deadline = new Deadline(clock, 100, readClocks(clock), 1_000);
    const copy = deadline.copy();
    await clock.advance(300);
    deadline.extend(readClocks(clock), 1_000);
    expect([deadline.remainingMs(), copy.remainingMs(), copy.marginMs]).toEqual([900, 600, 100]);
    clock.suspend(500);
    expect([deadline.remainingMs(), copy.remainingMs()]).toEqual([-Infinity, -Infinity]);
  });

  it("counts a sleep from the question of its last extension, not of an older one", async () => {
    const clock = new SetClock();
    const deadline = new Deadline(clock, 100, readClocks(clock), 10_000);
    clock.suspend(5_000);
    deadline.extend({ ...readClocks(clock), now: clock.now() + 1 }, 10_000);
    expect(deadline.remainingMs()).toBe(9_901);
  });

  it("follows a wall clock that is set again and again", async () => {
    const clock = new SetClock();
    const deadline = new Deadline(clock, 400, readClocks(clock), 10_000);
    for (const jump of [1_000, -5_000, 60_000]) {
      clock.jumpWall(jump);
      await clock.advance(10);
      expect(deadline.remainingMs()).toBeGreaterThan(9_000);
    }
    clock.suspend(101);
    expect(deadline.remainingMs()).toBe(-Infinity);
  });
});

describe("the system's clock", () => {
  it("reads all clocks at one moment", () => {
    const before = Date.now();
    const { now, wall, boot } = readClocks(systemClock);
    expect(wall).toBeGreaterThanOrEqual(before);
    expect(wall).toBeLessThanOrEqual(Date.now());
    expect(now).toBeLessThanOrEqual(performance.now());
    expect(boot).toBeGreaterThan(1_000);
  });

  it("calls back once, not after a cancel, and bears delays that Node's timers do not", async () => {
    const fired: string[] = [];
    const huge = systemClock.after(2 ** 40, () => fired.push("huge"));
    systemClock.after(0, () => fired.push("cancelled")).cancel();
    await new Promise<void>((resolve) => {
      systemClock.after(-5, () => {
        fired.push("past");
        resolve();
      });
    });
    await new Promise((resolve) => setTimeout(resolve, 5));
    huge.cancel();
    expect(fired).toEqual(["past"]);
  });

  it("draws numbers below one, and ids that nobody else has", () => {
    const draws = Array.from({ length: 100 }, () => systemClock.random());
    expect(draws.every((draw) => draw >= 0 && draw < 1)).toBe(true);
    expect(new Set(draws).size).toBeGreaterThan(90);
    const ids = Array.from({ length: 1_000 }, () => systemClock.uniqueId());
    expect(new Set(ids).size).toBe(1_000);
    expect(ids.every((id) => /^[0-9a-f]{16}$/.test(id))).toBe(true);
  });
});
