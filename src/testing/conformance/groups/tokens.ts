/** Promise 4: tokens strictly rise. */
import type { Hold } from "../../../seam/backend.js";
import { check, equal } from "../check.js";
import type { Group } from "../group.js";
import { takeover } from "./lost.js";

function higher(next: Hold, last: bigint, how: string): bigint {
  check(next.token > last, `token ${next.token} after ${last} (${how}): tokens must strictly rise`);
  return next.token;
}

export const tokens: Group = {
  name: "tokens strictly rise",
  cases: [
    {
      name: "from term to term",
      async run(stage) {
        const backends = await stage.openMany(3);
        const name = stage.name();
        let last = -1n;
        for (let round = 0; round < 12; round++) {
          const backend = backends[round % backends.length]!;
          const hold = await stage.win(backend, name, { ttlMs: stage.ttlMs(backend, 30_000) });
          last = higher(hold, last, "resigned");
          if (round % 3 === 0) await stage.renew(hold);
          await stage.release(hold);
        }
      },
    },
    {
      name: "over a lease that ran out",
      async run(stage) {
        const { old, successor } = await takeover(stage);
        higher(successor, old.token, "taken over");
      },
    },
    {
      name: "for the same candidate that campaigns again",
      async run(stage) {
        const backend = await stage.open();
        const name = stage.name();
        const candidate = "again-5f0c";
        const first = await stage.win(backend, name, { candidate });
        await stage.renew(first);
        const second = await stage.win(backend, name, { candidate, ttlMs: stage.ttlMs(backend, 30_000) });
        higher(second, first.token, "taken over from itself");
        const answer = await first.renew(stage.call()).catch(() => "lost" as const);
        equal(answer, "lost", "renewing the hold of the earlier term");
        await stage.renew(second);
      },
    },
    {
      name: "over a backend that was closed and opened again",
      async run(stage) {
        const name = stage.name();
        let last = -1n;
        for (let round = 0; round < 3; round++) {
          const backend = await stage.open();
          const hold = await stage.win(backend, name);
          last = higher(hold, last, "reopened");
          await stage.release(hold);
          await backend[Symbol.asyncDispose]();
        }
      },
    },
    {
      name: "and stay the same within a term",
      async run(stage) {
        const backend = await stage.open();
        const name = stage.name();
        const hold = await stage.win(backend, name, { ttlMs: stage.ttlMs(backend, 30_000) });
        const { token } = hold;
        for (let round = 0; round < 4; round++) {
          await stage.renew(hold);
          await stage.soon(hold.proclaim(`value ${round}`, stage.call()), "proclaiming must be answered");
          equal(hold.token, token, "the hold's own token");
          await stage.leaderIs(backend, name, { token }, "the leader that observers see");
        }
      },
    },
  ],
};
