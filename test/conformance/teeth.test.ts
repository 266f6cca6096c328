/** The suite bites: for each promise there is a backend that breaks it, and the test that must notice. */
import { afterAll, describe, expect, it } from "vitest";
import type { Hold } from "../../src/seam/backend.js";
import { readClocks, systemClock } from "../../src/kit/clock.js";
import {
  ConformanceFailure,
  conformanceSuite,
  conformanceTests,
} from "../../src/testing/conformance/index.js";
import { blindly, holds, never, outcome, override } from "../support/suite-mutants.js";
import type { Mutant } from "../support/suite-mutants.js";

const intervals: NodeJS.Timeout[] = [];
afterAll(() => intervals.forEach((interval) => clearInterval(interval)));

const MUTANTS: readonly (readonly [what: string, test: string, mutant: Mutant])[] = [
  [
    "frees the lease of a leader that is evicted",
    "release by another process: a leader that is evicted cannot renew, and nobody leads before its lease is over",
    () => ({
      backend: (backend) => ({
        evict: async (claim, options) =>
          (await backend.release!(claim, options)) === "released" ? { waitMs: 0 } : "not-held",
      }),
    }),
  ],
  [
    "grants without comparing",
    "a grant is atomic: of many who campaign at once, one wins",
    () => ({ parts: ({ leases }) => ({ leases: blindly(leases, ({ token }) => token === null) }) }),
  ],
  [
    "counts from the answer",
    "time counts from the question: askedAt lies before the sending, however long the request travels",
    holds((hold) => ({
      asked: readClocks(systemClock),
      renew: async (options) =>
        (await hold.renew(options)) === "lost" ? "lost" : { asked: readClocks(systemClock) },
    })),
  ],
  [
    "takes silence for a loss",
    "lost only if certain: a store that cannot be reached is not a loss",
    holds((hold) => ({ renew: (options) => hold.renew(options).catch(() => "lost" as const) })),
  ],
  [
    "takes an answer that never came for a loss, later",
    "lost only if certain: an answer that is lost is not a loss",
    holds((hold) => {
      let unanswered = false;
      return {
        renew: async (options) => {
          if (unanswered) return "lost";
          unanswered = true;
          const answer = await hold.renew(options);
          unanswered = false;
          return answer;
        },
      };
    }),
  ],
  [
    "goes on extending what was taken over",
    "lost only if certain: a lease that someone else has taken over is lost",
    holds((hold) => ({
      renew: async (options) => {
        const answer = await hold.renew(options);
        return answer === "lost" ? { asked: hold.asked } : answer;
      },
    })),
  ],
  [
    "gives the same token again",
    "tokens strictly rise: for the same candidate that campaigns again",
    () => {
      const known = new Map<string, Hold>();
      return {
        backend: (backend) => ({
          campaign: async (candidacy, options) => {
            const hold = known.get(candidacy.candidate) ?? (await backend.campaign(candidacy, options));
            if (hold !== null) known.set(candidacy.candidate, hold);
            return hold;
          },
        }),
      };
    },
  ],
  ["has one token for all", "tokens strictly rise: from term to term", holds(() => ({ token: 1n }))],
  [
    "releases whatever is there",
    "release harms no successor: a release that comes after the takeover changes nothing",
    () => ({ parts: ({ leases }) => ({ leases: blindly(leases, ({ holder }) => holder === null) }) }),
  ],
  [
    "does not release",
    "release harms no successor: a released leadership can be taken at once",
    holds(() => ({ release: async () => {} })),
  ],
  [
    "does not hear the signal",
    "calls end when aborted: a campaign that waits",
    () => ({
      backend: (backend) => ({
        campaign: (candidacy, { wait }) => backend.campaign(candidacy, { wait, signal: never }),
      }),
    }),
  ],
  [
    "wins after it was cancelled",
    "a cancelled campaign is gone: when it was cancelled while it waited",
    () => ({
      backend: (backend) => ({
        campaign: (candidacy, { wait, signal }) =>
          new Promise((resolve, reject) => {
            backend.campaign(candidacy, { wait, signal: never }).then(resolve, reject);
            signal.addEventListener("abort", () => reject(signal.reason), { once: true });
          }),
      }),
    }),
  ],
  [
    "does not wait the whole lease",
    "silent leaders are replaced: not before their lease is over, and soon after",
    () => ({
      parts: ({ leases }) => ({
        leases: override(leases, {
          read: async (key, options) => {
            const entry = await leases.read(key, options);
            return entry && { ...entry, record: { ...entry.record, ttlMs: (entry.record.ttlMs ?? 0) / 2 } };
          },
        }),
      }),
    }),
  ],
  [
    "grants less than was asked for",
    "silent leaders are replaced: and a lease is as long as was asked for, or longer",
    holds((hold) => ({ ttlMs: hold.ttlMs - 1 })),
  ],
  [
    "does not see that nobody leads",
    "observers see who leads: nobody, when a leader has gone silent for longer than its lease",
    () => ({
      backend: (backend) => ({
        observe: async function* (election, options) {
          for await (const leader of backend.observe(election, options)) if (leader !== null) yield leader;
        },
      }),
    }),
  ],
  [
    "publishes nothing",
    "observers see who leads: values as they were proclaimed",
    holds((hold) => ({ proclaim: (_, options) => hold.renew(options) })),
  ],
  [
    "does not tell A from a",
    "two names are two elections: look-alikes are not mixed up",
    () => ({
      parts: ({ leases }) => ({
        leases: override(leases, {
          read: (key, options) => leases.read(key.toLowerCase(), options),
          write: (key, expected, record, options) =>
            leases.write(key.toLowerCase(), expected, record, options),
        }),
      }),
    }),
  ],
  [
    "keeps records where the leases are",
    "records by compare-and-swap: has nothing to do with the election of the same name",
    (server) => ({ parts: () => ({ records: server.texts("leases") }) }),
  ],
  [
    "writes records without comparing",
    "records by compare-and-swap: counts right when many count at once",
    () => ({ parts: ({ records }) => ({ records: blindly(records, () => true) }) }),
  ],
  [
    "forgets the ttl it promised to take",
    "guarantees are declared: in known words and sane numbers",
    () => ({
      backend: ({ guarantees }) => ({ guarantees: { ...guarantees, ttl: { minMs: Number.NaN, stepMs: 0 } } }),
    }),
  ],
  [
    "cannot keep a term",
    "elections keep the law: a term is kept for longer than its lease",
    holds(() => ({ renew: async () => "lost" })),
  ],
];

describe("the conformance suite notices a backend that", () => {
  it.concurrent.each(MUTANTS)("%s", async (_, title, mutant) => {
    expect(conformanceTests()).toContain(title);
    expect(await outcome(title, mutant)).toBeInstanceOf(ConformanceFailure);
  });

  it("leaves a handle behind", async () => {
    const leaky: Mutant = () => {
      intervals.push(setInterval(() => {}, 60_000));
      return {};
    };
    const error = await outcome("closing leaves nothing behind: no handle, after many openings", leaky);
    expect(error).toBeInstanceOf(ConformanceFailure);
    expect(String(error)).toContain("Timeout");
  });

  it("and has nothing against a sound one", async () => {
    const titles = [...new Set(MUTANTS.map(([, title]) => title))];
    const errors = await Promise.all(titles.map((title) => outcome(title, () => ({}))));
    expect(errors.filter((error) => error !== undefined)).toEqual([]);
  });

  it("demands a reason for every skip, and means for every test", async () => {
    const options = {
      backend: () => Promise.reject(new Error("not opened")),
      runner: { describe: (_: string, body: () => void) => body(), test: () => {} },
      print: () => {},
    };
    expect(() => conformanceSuite({ ...options, skips: [{ test: "no such test", reason: "x" }] })).toThrow(
      "no such test",
    );
    expect(() => conformanceSuite({ ...options, skips: [{ test: "real processes", reason: " " }] })).toThrow(
      "no reason",
    );
    const bodies: (() => Promise<void>)[] = [];
    conformanceSuite({
      ...options,
      runner: { ...options.runner, test: (_, body) => void bodies.push(body) },
    });
    const errors = await Promise.all(bodies.map((body) => body().catch(String)));
    expect(errors.filter((error) => String(error).includes("needs the option"))).toHaveLength(22);
  });
});
