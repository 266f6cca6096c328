/** Events, errors and tokens: what is told, to whom, and in which words. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, it } from "vitest";
import {
  ConclaveError,
  describe as inWords,
  invalid,
  isConclaveError,
  isRetriable,
  NotLeaderError,
  StaleLeaderError,
} from "../../src/kit/errors.js";
import type { ErrorCode } from "../../src/kit/errors.js";
import { Reports } from "../../src/law/reports.js";
import { assertFresh, checkToken, parseToken } from "../../src/kit/token.js";
import { TokenFloor, wentBack } from "../../src/law/token-floor.js";
import { openScene } from "../support/hand-backend.js";

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("an emitter", () => {
  it("tells each listener once, later, until it is taken off", async () => {
    const events = new Reports("e", "c", undefined);
    const told: string[] = [];
    const off = events.on("error", ({ error }) => told.push(`a ${String(error)}`));
    events.on("error", ({ error }) => told.push(`b ${String(error)}`));
    expect([events.count("error"), events.count("leader")]).toEqual([2, 0]);
    events.emit("error", { error: 1 });
    expect(told).toEqual([]);
    await settle();
    expect(told).toEqual(["a 1", "b 1"]);
    off();
    expect(events.count("error")).toBe(1);
    events.emit("error", { error: 2 });
    events.emit("leader", { leader: null });
    await settle();
    expect(told).toEqual(["a 1", "b 1", "b 2"]);
    expect(new Reports("e", "c", undefined).count("error")).toBe(0);
  });

  it("logs what a listener throws, also later, and goes on", async () => {
    const { election, logged } = openScene();
    election.on("elected", () => {
      throw new Error("at once");
    });
    election.on("elected", () => Promise.reject(new Error("later")));
    await election.campaign();
    await settle();
    expect(logged.filter((line) => line.startsWith("error"))).toEqual([
      'error: election "e": a listener threw: at once',
      'error: election "e": a listener threw: later',
    ]);
    await election.close();
  });

  it("publishes to diagnostics_channel who and where, if anybody listens there", async () => {
    const published: unknown[] = [];
    const note = (message: unknown): void => void published.push(message);
    subscribe("conclave:error", note);
    try {
      new Reports("e", "c", undefined).emit("error", { error: 1 });
    } finally {
      unsubscribe("conclave:error", note);
    }
    new Reports("e", "c", undefined).emit("error", { error: 2 });
    expect(published).toEqual([{ election: "e", candidate: "c", error: 1 }]);
  });

  it("survives a logger that throws", () => {
    const broken = (): never => {
      throw new Error("disk full");
    };
    const events = new Reports("e", "c", { debug: broken, info: broken, warn: broken, error: broken });
    expect(() => events.log("info", "text")).not.toThrow();
  });
});

describe("an error", () => {
  it.each<[ErrorCode, boolean]>([
    ["timeout", true],
    ["unavailable", true],
    ["invalid", false],
    ["state", false],
    ["forbidden", false],
    ["conflict", false],
    ["token-regression", false],
    ["unsupported", false],
  ])("of code %s may be tried again: %s", (code, retriable) => {
    const error = new ConclaveError(code, "text");
    expect(error).toMatchObject({
      name: "ConclaveError",
      code,
      retriable,
      message: "text",
    });
    expect(isRetriable(error)).toBe(retriable);
    expect(new ConclaveError(code, "text", { retriable: !retriable }).retriable).toBe(!retriable);
  });

  it("has a cause if one is given, and no such property otherwise", () => {
    const cause = new Error("why");
    expect(new ConclaveError("state", "text", { cause }).cause).toBe(cause);
    expect("cause" in new ConclaveError("state", "text")).toBe(false);
  });

  it("of a kind has its name, code and numbers", () => {
    expect(new NotLeaderError(5n, "over")).toMatchObject({
      name: "NotLeaderError",
      code: "not-leader",
      token: 5n,
      message: "over",
      retriable: false,
    });
    expect(new StaleLeaderError(5n, 7n)).toMatchObject({
      name: "StaleLeaderError",
      code: "stale-leader",
      token: 5n,
      highest: 7n,
      message: expect.stringMatching(/^token 5 is older than 7/),
    });
    expect(new StaleLeaderError(5n, 7n, "own words").message).toBe("own words");
    expect(invalid("text")).toMatchObject({ code: "invalid", message: "text" });
  });

  it("of another copy of the library is recognised; what is foreign may pass", () => {
    expect(isConclaveError(new ConclaveError("state", "x"))).toBe(true);
    expect(isConclaveError({ [Symbol.for("conclave.error")]: true })).toBe(true);
    for (const other of [new Error("x"), null, undefined, "text", 7]) {
      expect(isConclaveError(other)).toBe(false);
      expect(isRetriable(other)).toBe(true);
    }
  });

  it("in words is one line, whatever was thrown", () => {
    expect(inWords(new Error("a \r\n\n  b\nc"))).toBe("a b c");
    expect(inWords(Object.assign(new Error(""), { code: 7 }))).toBe("Error");
    expect(inWords({ toString: () => "odd\nthing" })).toBe("odd thing");
  });
});

describe("a token", () => {
  it("is read from decimal digits, twenty at most, and from nothing else", () => {
    expect([parseToken("0"), parseToken("007"), parseToken("9".repeat(20))]).toEqual([
      0n,
      7n,
      10n ** 20n - 1n,
    ]);
    for (const bad of [
      "",
      "-1",
      "+1",
      "1.0",
      "1e3",
      "0x1",
      " 1",
      "1 ",
      "1\n",
      "9".repeat(21),
      7,
      7n,
      null,
      undefined,
    ])
      expect(parseToken(bad)).toBeUndefined();
  });

  it("is a bigint in that range, or is refused with what was given", () => {
    expect([checkToken(0n), checkToken(10n ** 20n - 1n)]).toEqual([0n, 10n ** 20n - 1n]);
    for (const bad of [-1n, 10n ** 20n, 7, "7", undefined])
      expect(() => checkToken(bad)).toThrow(new RegExp(`got ${typeof bad} ${String(bad)}`));
  });

  it("is fresh if none newer was seen: its equal is the same leader again", () => {
    assertFresh(5n, null);
    assertFresh(5n, 5n);
    assertFresh(6n, 5n);
    expect(() => assertFresh(4n, 5n)).toThrow(StaleLeaderError);
  });
});

describe("the floor of tokens", () => {
  const allowed = (floor: TokenFloor, token: bigint): boolean => {
    try {
      floor.check(token);
      return true;
    } catch (error) {
      expect(error).toMatchObject({ code: "token-regression", retriable: false });
      return false;
    }
  };

  it("is the highest seen: equal may be this very grant", () => {
    const floor = new TokenFloor();
    expect(allowed(floor, 0n)).toBe(true);
    floor.seen(5n);
    floor.seen(3n);
    expect([4n, 5n, 6n].map((token) => allowed(floor, token))).toEqual([false, true, true]);
  });

  it("is above our own last term", () => {
    const floor = new TokenFloor();
    floor.admitted(5n);
    expect([4n, 5n, 6n].map((token) => allowed(floor, token))).toEqual([false, false, true]);
  });

  it("names the higher of both, and is gone when it is accepted", () => {
    const floor = new TokenFloor();
    floor.admitted(5n);
    expect(() => floor.check(1n)).toThrow("it has to be 6 or higher");
    floor.seen(9n);
    expect(() => floor.check(1n)).toThrow("it has to be 9 or higher");
    floor.forget();
    expect(allowed(floor, 0n)).toBe(true);
    expect(wentBack(2n, 9n)).toMatchObject({
      code: "token-regression",
      message: expect.stringMatching("token 2 after one with token 9"),
    });
  });
});
