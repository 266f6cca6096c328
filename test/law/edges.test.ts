/** The last instant of a deadline, a lease with nobody on it: on clocks set by hand. */
import { beforeEach, describe, expect, it } from "vitest";
import { readClocks } from "../../src/index.js";
import type { Clock } from "../../src/index.js";
import { Deadline } from "../../src/law/deadline.js";
import { Lease } from "../../src/law/lease.js";
import { TokenFloor } from "../../src/law/token-floor.js";
import { MARGIN_MS, TTL_MS } from "../support/hand-backend.js";

const HELD_MS = TTL_MS - MARGIN_MS;

/** Three clocks, each set by the test; how often boot time was read. */
class HandClock implements Clock {
  at = { now: 1_000, wall: 1e12, boot: 5_000 };
  bootReads = 0;

  now(): number {
    return this.at.now;
  }

  wall(): number {
    return this.at.wall;
  }

  boot(): number {
    this.bootReads++;
    return this.at.boot;
  }

  after(): { cancel(): void } {
    return { cancel() {} };
  }

  random(): number {
    return 0;
  }

  uniqueId(): string {
    return "0";
  }

  pass(ms: number): void {
    this.at = { now: this.at.now + ms, wall: this.at.wall + ms, boot: this.at.boot + ms };
  }
}

describe("a deadline", () => {
  const MARGIN = 400;
  const TOLERANCE = MARGIN / 4;
  let clock: HandClock;
  let deadline: Deadline;

  beforeEach(() => {
    clock = new HandClock();
    deadline = new Deadline(clock, MARGIN, readClocks(clock), 2_000);
    clock.bootReads = 0;
  });

  it("reads boot time, a system call, only when the wall clock went its own way", () => {
    clock.pass(700);
    expect([deadline.remainingMs(), clock.bootReads]).toEqual([900, 0]);
    clock.at.wall += TOLERANCE;
    expect([deadline.remainingMs(), clock.bootReads]).toEqual([900, 0]);
    clock.at.wall += 1;
    expect([deadline.remainingMs(), clock.bootReads]).toEqual([900, 1]);
    // A clock that was set is looked into once.
    expect([deadline.remainingMs(), clock.bootReads]).toEqual([900, 1]);
    clock.at.wall -= TOLERANCE + 1;
    expect([deadline.remainingMs(), clock.bootReads]).toEqual([900, 2]);
  });

  it("takes a sleep for one when it is longer than the clocks are exact, and not before", () => {
    clock.at.boot += TOLERANCE;
    clock.at.wall += TOLERANCE + 1;
    expect(deadline.remainingMs()).toBe(1_600);
    clock.at.boot += 1;
    clock.at.wall += 2 * TOLERANCE;
    expect(deadline.remainingMs()).toBe(-Infinity);
  });
});

describe("a lease", () => {
  let clock: HandClock;
  let kept: number;
  let told: string[];
  const tenant = (name: string): Parameters<Lease["join"]>[0] => ({
    attempted: () => told.push(`${name} attempted`),
    extended: () => told.push(`${name} extended`),
    expired: () => told.push(`${name} expired`),
    revoked: () => told.push(`${name} revoked`),
  });

  function open(): Lease {
    const deadline = new Deadline(clock, MARGIN_MS, readClocks(clock), TTL_MS);
    return new Lease(clock, TTL_MS, deadline, () => {
      kept++;
      return () => void kept--;
    });
  }

  beforeEach(() => {
    clock = new HandClock();
    kept = 0;
    told = [];
  });

  it("has nothing left at the deadline, and never again: not even by a clock that goes back", () => {
    const lease = open();
    lease.join(tenant("a"));
    clock.pass(HELD_MS - 1);
    expect(lease.remainingMs).toBe(1);
    clock.pass(1);
    expect(lease.remainingMs).toBe(0);
    clock.pass(-1);
    expect(lease.remainingMs).toBe(0);
    clock.pass(500);
    expect(lease.remainingMs, "not less than nothing").toBe(0);
  });

  it("may be granted to others a margin after the deadline, counted from the question", () => {
    const lease = open();
    lease.join(tenant("a"));
    expect(lease.endsAt).toBe(1_000 + TTL_MS);
    clock.pass(4_000);
    expect(lease.accept({ asked: readClocks(clock) })).toBe(true);
    expect(lease.endsAt).toBe(5_000 + TTL_MS);
  });

  it("is extended by no answer at its last instant, after it, or with nobody on it", () => {
    const late = open();
    late.join(tenant("late"));
    clock.pass(HELD_MS);
    expect(late.accept({ asked: readClocks(clock) })).toBe(false);
    const left = open();
    const tenantOf = tenant("left");
    left.join(tenantOf);
    left.leave(tenantOf);
    expect(left.accept({ asked: readClocks(clock) })).toBe(false);
    const lost = open();
    lost.join(tenant("lost"));
    expect(lost.accept("lost")).toBe(false);
    expect(told).toEqual(["lost revoked"]);
  });

  it("is kept while somebody is on it", () => {
    const lease = open();
    const [a, b] = [tenant("a"), tenant("b")];
    lease.join(a);
    lease.join(b);
    expect(kept).toBe(1);
    lease.leave(a);
    expect(kept).toBe(1);
    lease.leave(b);
    expect(kept).toBe(0);
  });

  it("that is found lost in the moment it begins to be kept ends its term, and is not kept", () => {
    const deadline = new Deadline(clock, MARGIN_MS, readClocks(clock), TTL_MS);
    const lease = new Lease(clock, TTL_MS, deadline, (self) => {
      kept++;
      self.lose();
      return () => void kept--;
    });
    const a = tenant("a");
    lease.join({
      ...a,
      revoked: (detail) => {
        a.revoked(detail);
        lease.leave(a);
      },
    });
    expect(told[0]).toBe("a revoked");
    expect([lease.remainingMs, kept]).toEqual([0, 0]);
  });
});

describe("the floor of tokens", () => {
  it("is above our own last term even if an observer has seen that term too", () => {
    const floor = new TokenFloor();
    floor.admitted(5n);
    floor.seen(5n);
    expect(() => floor.check(5n)).toThrow("has to be 6 or higher");
    expect(() => floor.check(6n)).not.toThrow();
  });

  it("is what was seen of others, if that is higher: it may be this very grant", () => {
    const floor = new TokenFloor();
    floor.admitted(5n);
    floor.seen(7n);
    floor.seen(6n);
    expect(() => floor.check(6n)).toThrow("has to be 7 or higher");
    expect(() => floor.check(7n)).not.toThrow();
  });
});
