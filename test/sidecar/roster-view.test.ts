/** For how long a sidecar shows who stands: on a virtual clock, with an election that answers when the test says so. */
import { expect, it } from "vitest";
import type { Standee } from "../../src/api/term.js";
import type { Election } from "../../src/election/election.js";
import { RosterView } from "../../src/sidecar/roster-view.js";
import { SetClock } from "../support/set-clock.js";

const TTL_MS = 3_000;
const A: Standee = { candidate: "a-1", priority: 1, eligible: true, leads: false, since: 1, self: false };
const { signal } = new AbortController();

it("for a ttl from the question, not from the answer", async () => {
  const clock = new SetClock();
  const election = {
    backend: { records: {} },
    timing: { ttlMs: TTL_MS },
    candidates: async () => {
      await clock.advance(1_000); // on its way
      return [A];
    },
  };
  const view = new RosterView(election as unknown as Election, clock);
  expect(await view.look(signal)).toBe(true);
  await clock.advance(TTL_MS - 1_000);
  expect(view.state().candidates).toMatchObject([{ candidate: "a-1", priority: 1 }]);
  await clock.advance(1);
  expect(view.state()).toEqual({});
});
