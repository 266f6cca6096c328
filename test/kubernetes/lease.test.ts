/** What is read from a Lease and what is written, by the rules of client-go. No server. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  checkLeaseName,
  renewalIdOf,
  nextLease,
  parseLease,
  publishedTerm,
  recordOf,
  TERM_ANNOTATION,
} from "../../src/backends/kubernetes/lease.js";
import type { LeaseObject } from "../../src/backends/kubernetes/lease.js";
import { microTime, parseMicroTime } from "../../src/backends/kubernetes/microtime.js";

const AT = { namespace: "default", name: "jobs" };
const NOW = Date.parse("2026-01-02T03:04:05.678Z");

function lease(spec: Record<string, unknown>, metadata: Record<string, unknown> = {}): LeaseObject {
  return parseLease({ metadata: { name: "jobs", uid: "u-1", resourceVersion: "41", ...metadata }, spec });
}

function written(base: LeaseObject | null, record: Parameters<typeof nextLease>[2], wall = NOW): LeaseObject {
  const body = nextLease(base, AT, record, wall);
  return parseLease({ ...body, metadata: { ...(body["metadata"] as object), resourceVersion: "42" } });
}

const mine = { holder: "me", ttlMs: 15_000, value: "v", since: NOW, token: null };

describe("MicroTime", () => {
  it("has exactly six digits", () => {
    expect(microTime(NOW)).toBe("2026-01-02T03:04:05.678000Z");
    expect(microTime(0)).toBe("1970-01-01T00:00:00.000000Z");
    expect(microTime(Date.parse("2024-02-29T23:59:59.999Z"))).toBe("2024-02-29T23:59:59.999000Z");
  });

  it("agrees with Date on every instant, both ways", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.parse("9999-12-31T23:59:59.999Z") }), (ms) => {
        expect(microTime(ms)).toBe(new Date(ms).toISOString().replace("Z", "000Z"));
        expect(parseMicroTime(microTime(ms))).toBe(ms);
      }),
    );
  });

  it("is never the text it replaces: an update that changes nothing is no renewal", () => {
    const first = microTime(NOW);
    const second = microTime(NOW, first);
    expect(second).not.toBe(first);
    expect(microTime(NOW, second)).not.toBe(second);
    expect(parseMicroTime(second)).toBe(NOW);
  });

  it.each([
    undefined,
    null,
    5,
    "",
    "yesterday",
    "2026-13-01T00:00:00.000000Z",
    "2026-01-01T25:00:00Z",
    "x".repeat(10_000),
  ])("%j is no time", (value) => {
    expect(parseMicroTime(value)).toBeUndefined();
  });

  it("survives a clock that says nonsense", () => {
    expect(microTime(Number.NaN)).toBe("1970-01-01T00:00:00.000000Z");
    expect(microTime(-1)).toBe("1970-01-01T00:00:00.000000Z");
    expect(microTime(Infinity)).toBe("1970-01-01T00:00:00.000000Z");
    expect(microTime(1e18)).toMatch(/^9999-12-31T23:59:59\.999000Z$/);
  });
});

describe("writing", () => {
  it("creates with no transitions", () => {
    const { spec } = written(null, mine);
    const time = "2026-01-02T03:04:05.678000Z";
    expect(spec).toEqual({
      holderIdentity: "me",
      leaseDurationSeconds: 15,
      acquireTime: time,
      renewTime: time,
      leaseTransitions: 0,
    });
  });

  it("renews: acquireTime and transitions stay, byte for byte", () => {
    const base = lease({
      holderIdentity: "me",
      leaseDurationSeconds: 15,
      acquireTime: "2026-01-02T00:00:00.123456Z",
      renewTime: "2026-01-02T00:00:00.123456Z",
      leaseTransitions: 7,
    });
    const { spec } = written(base, { ...mine, token: 41n });
    expect(spec).toMatchObject({
      acquireTime: "2026-01-02T00:00:00.123456Z",
      renewTime: microTime(NOW),
      leaseTransitions: 7,
    });
  });

  it("takes over: both times are now, transitions go up by one, from a holder and from none", () => {
    for (const holder of ["other", ""]) {
      const base = lease({
        holderIdentity: holder,
        leaseDurationSeconds: 60,
        acquireTime: "2026-01-02T00:00:00.000000Z",
        renewTime: "2026-01-02T00:00:00.000000Z",
        leaseTransitions: 7,
      });
      const { spec } = written(base, mine);
      expect(spec).toEqual({
        holderIdentity: "me",
        leaseDurationSeconds: 15,
        acquireTime: microTime(NOW),
        renewTime: microTime(NOW),
        leaseTransitions: 8,
      });
    }
  });

  it("takes over from itself: a new term, but the holder did not change", () => {
    const base = lease({
      holderIdentity: "me",
      acquireTime: microTime(NOW),
      renewTime: microTime(NOW),
      leaseTransitions: 7,
    });
    const { spec } = written(base, mine);
    expect(spec["leaseTransitions"]).toBe(7);
    expect(spec["acquireTime"]).not.toBe(microTime(NOW));
  });

  it("releases: empty holder, one second, transitions stay", () => {
    const base = lease({
      holderIdentity: "me",
      leaseDurationSeconds: 15,
      acquireTime: "2026-01-02T00:00:00.000000Z",
      renewTime: "2026-01-02T00:00:00.000000Z",
      leaseTransitions: 7,
    });
    const { spec } = written(base, { ...mine, holder: null, token: 41n });
    expect(spec).toEqual({
      holderIdentity: "",
      leaseDurationSeconds: 1,
      acquireTime: microTime(NOW),
      renewTime: microTime(NOW),
      leaseTransitions: 7,
    });
  });

  describe("with an heir", () => {
    const heir = { candidate: "web-2", forMs: 4_000 };
    const released = (): LeaseObject =>
      written(lease({ holderIdentity: "me", acquireTime: microTime(5) }, { annotations: { a: "b" } }), {
        ...{ ...mine, holder: null, token: 41n, heir },
      });

    it("releases in its favour, in an annotation that is read back", () => {
      const vacant = released();
      expect(vacant.spec["holderIdentity"]).toBe("");
      expect(recordOf(vacant, null)).toMatchObject({ holder: null, value: "", token: null, heir });
      expect(vacant.metadata["annotations"]).toMatchObject({ a: "b" });
    });

    it("names nobody any more once anybody has taken over or given up", () => {
      const { metadata, spec } = released();
      const taken = lease({ ...spec, holderIdentity: "client-go" }, metadata);
      const givenUp = lease({ ...spec, acquireTime: microTime(NOW + 1_000) }, metadata);
      for (const other of [taken, givenUp]) expect(recordOf(other, null).heir).toBeUndefined();
      const next = written(released(), mine);
      expect(recordOf(next, null)).toMatchObject({ holder: "me", value: "v" });
      expect(recordOf(next, null).heir).toBeUndefined();
    });

    it.each([{ heir: 7 }, { heir: "" }, { heirMs: "4000" }, { heirMs: 0 }, { heir: "a\nb" }])(
      "believes nothing that cannot be meant: %j",
      (over) => {
        const { metadata, spec } = released();
        const annotations = metadata["annotations"] as Record<string, string>;
        const text = JSON.stringify({ ...JSON.parse(annotations[TERM_ANNOTATION]!), ...over });
        const damaged = lease(spec, {
          ...metadata,
          annotations: { ...annotations, [TERM_ANNOTATION]: text },
        });
        expect(recordOf(damaged, null).heir).toBeUndefined();
      },
    );
  });

  it("carries over what it does not know, and the version and uid it was judged on", () => {
    const base = lease(
      {
        holderIdentity: "other",
        strategy: "OldestEmulationVersion",
        preferredHolder: "x",
        leaseTransitions: 1,
      },
      { labels: { a: "b" }, annotations: { c: "d", [TERM_ANNOTATION]: "old" }, finalizers: ["f"] },
    );
    const body = nextLease(base, AT, mine, NOW);
    expect(body["spec"]).toMatchObject({ strategy: "OldestEmulationVersion", preferredHolder: "x" });
    expect(body["metadata"]).toMatchObject({
      resourceVersion: "41",
      uid: "u-1",
      labels: { a: "b" },
      finalizers: ["f"],
    });
    expect((body["metadata"] as { annotations: Record<string, string> }).annotations["c"]).toBe("d");
  });

  it("refuses a value whose annotation nobody would read back", () => {
    const long = { ...mine, value: "\u0001".repeat(16 * 1024) };
    for (const base of [null, lease({ holderIdentity: "me" })])
      expect(() => nextLease(base, AT, long, NOW)).toThrow(expect.objectContaining({ code: "invalid" }));
    const fits = written(null, { ...mine, value: "x".repeat(16 * 1024) });
    expect(recordOf(fits, null).value).toHaveLength(16 * 1024);
  });

  it("does not count past what the server takes", () => {
    const { spec } = written(lease({ holderIdentity: "other", leaseTransitions: 2 ** 31 - 1 }), mine);
    expect(spec["leaseTransitions"]).toBe(2 ** 31 - 1);
    expect(
      written(lease({ holderIdentity: "other", leaseTransitions: -3 }), mine).spec["leaseTransitions"],
    ).toBe(1);
  });
});

describe("reading", () => {
  it("reads back what it wrote", () => {
    const first = written(null, mine);
    expect(recordOf(first, null)).toEqual(mine);
    const second = written(first, { ...mine, token: 42n, value: "w" });
    expect(recordOf(second, null)).toEqual({ ...mine, token: 42n, value: "w" });
    expect(recordOf(written(second, { ...mine, holder: null }), null)).toMatchObject({
      holder: null,
      ttlMs: 1000,
      value: "",
    });
  });

  it("ignores the term of another holder: client-go keeps annotations when it takes over", () => {
    const ours = written(null, { ...mine, token: 9n });
    const taken = parseLease({ ...ours.raw, spec: { ...ours.spec, holderIdentity: "go" } });
    expect(publishedTerm(taken)).toBeUndefined();
    const later = parseLease({
      ...ours.raw,
      spec: { ...ours.spec, acquireTime: "2026-02-02T00:00:00.000000Z" },
    });
    expect(publishedTerm(later)).toBeUndefined();
    expect(recordOf(taken, 77n)).toMatchObject({ holder: "go", token: 77n, value: "" });
  });

  it("does not believe a token above the Lease's own version: the holder counts, the annotation does not", () => {
    const forged = (token: string): LeaseObject => {
      const ours = written(null, { ...mine, token: 9n });
      const term = JSON.stringify({
        v: 1,
        holder: "me",
        acquireTime: ours.spec["acquireTime"],
        token,
        value: "x",
      });
      return lease(ours.spec, { annotations: { [TERM_ANNOTATION]: term } });
    };
    for (const token of ["42", "99999999999999999999"]) {
      expect(publishedTerm(forged(token))).toBeUndefined();
      expect(recordOf(forged(token), 40n)).toMatchObject({ holder: "me", token: 40n, value: "" });
    }
    expect(publishedTerm(forged("41"))).toEqual({ token: 41n, value: "x" });
  });

  it("a label edit is not a renewal; anything in the spec is", () => {
    const base = lease({ holderIdentity: "go", renewTime: "2026-01-02T00:00:00.000000Z" });
    const edited = lease(
      { holderIdentity: "go", renewTime: "2026-01-02T00:00:00.000000Z" },
      { resourceVersion: "50", labels: { x: "y" } },
    );
    expect(renewalIdOf(edited)).toBe(renewalIdOf(base));
    expect(renewalIdOf(lease({ holderIdentity: "go", renewTime: "2026-01-02T00:00:01.000000Z" }))).not.toBe(
      renewalIdOf(base),
    );
  });

  it("nothing a hostile Lease says becomes free, endless or a crash", () => {
    const anything = fc.oneof(
      fc.string(),
      fc.integer(),
      fc.double(),
      fc.constant(null),
      fc.boolean(),
      fc.array(fc.integer(), { maxLength: 3 }),
    );
    const spec = fc.record(
      {
        holderIdentity: fc.string({ minLength: 1 }),
        leaseDurationSeconds: anything,
        acquireTime: anything,
        renewTime: anything,
        leaseTransitions: anything,
      },
      { requiredKeys: ["holderIdentity"] },
    );
    fc.assert(
      fc.property(spec, anything, (fields, annotation) => {
        const read = recordOf(lease(fields, { annotations: { [TERM_ANNOTATION]: annotation } }), 5n);
        expect(read.holder).toBe(fields.holderIdentity);
        expect(read.token).not.toBeNull();
        if (read.ttlMs !== null) {
          expect(read.ttlMs).toBeGreaterThan(0);
          expect(read.ttlMs).toBeLessThanOrEqual(24 * 60 * 60 * 1000);
        }
        const next = written(lease(fields), mine).spec;
        expect(Number.isInteger(next["leaseTransitions"])).toBe(true);
      }),
    );
  });

  it("a Lease without a holder is free, as client-go has it", () => {
    for (const spec of [{}, { holderIdentity: "" }, { holderIdentity: null }])
      expect(recordOf(lease(spec), null).holder).toBeNull();
  });

  it("refuses a server whose versions are no numbers", () => {
    expect(() => lease({}, { resourceVersion: "abc" })).toThrow(/resourceVersion/);
    expect(() => parseLease("no object")).toThrow(/resourceVersion/);
  });

  it("an annotation of a later format is left aside, the Lease itself still counts", () => {
    const later = JSON.stringify({ v: 2, holder: "me", acquireTime: microTime(NOW), term: { token: "9" } });
    const read = recordOf(
      lease(
        { holderIdentity: "me", leaseDurationSeconds: 15, acquireTime: microTime(NOW) },
        { annotations: { [TERM_ANNOTATION]: later } },
      ),
      5n,
    );
    expect(read).toMatchObject({ holder: "me", ttlMs: 15_000, token: 5n, value: "" });
  });
});

describe("names", () => {
  it.each(["jobs", "a.b-c.d", "0"])("%s names a Lease", (name) => {
    expect(checkLeaseName(name)).toBe(name);
  });

  it.each(["Jobs", "a_b", "-a", "a.", "a/b", "x".repeat(254), "", "a..b"])("%j does not", (name) => {
    expect(() => checkLeaseName(name)).toThrow(/cannot name a Kubernetes Lease/);
  });
});
