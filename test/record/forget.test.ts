/** Forgetting an election: only what anybody could take over, and only in the version that was looked at. */
import { describe, expect, it } from "vitest";
import { memoryBackend } from "../../src/backends/memory/index.js";
import { Election } from "../../src/election/election.js";
import { leasesOf } from "../../src/record/backend.js";
import { forgetLease } from "../../src/record/forget.js";
import { LeaseReader } from "../../src/record/lease-reader.js";
import { systemClock } from "../../src/kit/clock.js";

const { signal } = new AbortController();

describe("forgetting an election of the record engine", () => {
  it("removes a vacated record, never one that is held, and tokens go on rising", async () => {
    const backend = memoryBackend();
    await using election = new Election({ name: "jobs", backend });
    const term = await election.campaign();
    expect(await backend.forget!("jobs", { signal })).toBe("in-use");
    await term.resign();
    expect(await backend.forget!("jobs", { signal })).toBe("removed");
    expect(await backend.list!({ signal })).toEqual({ names: [], complete: true });
    const next = await election.campaign();
    expect(next.token).toBeGreaterThan(term.token);
    await next.resign();
  });

  it("leaves a record that changed after the look, and one that its store cannot remove safely", async () => {
    const backend = memoryBackend();
    await using election = new Election({ name: "jobs", backend });
    await (await election.campaign()).resign();
    const store = leasesOf(backend)!;
    const clock = systemClock;
    const reads = new LeaseReader(clock, store);
    const { remove, ...others } = store;
    expect(await forgetLease({ store: others, reads, clock }, "jobs", { signal })).toBe("kept");
    const raced = {
      ...store,
      remove: async (key: string, expected: bigint): Promise<boolean> => {
        // Between the look and the removal somebody is elected.
        const term = await election.campaign();
        expect(term.held).toBe(true);
        return remove!(key, expected, { signal });
      },
    };
    expect(await forgetLease({ store: raced, reads, clock }, "jobs", { signal })).toBe("in-use");
    expect(election.leading).toBe(true);
  });
});
