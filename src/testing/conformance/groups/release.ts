/** Promise 5: `release` never harms a successor, however late it arrives. */
import { check, equal } from "../check.js";
import type { Group } from "../group.js";
import { takeover } from "./lost.js";

export const release: Group = {
  name: "release harms no successor",
  cases: [
    {
      name: "a released leadership can be taken at once",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        const hold = await stage.win(a!, name, { ttlMs: stage.ttlMs(a!, 60_000) });
        const waiting = stage.campaign(b!, name, { ttlMs: stage.ttlMs(b!, 60_000) });
        await stage.pause(200);
        await stage.release(hold);
        check(
          (await stage.soon(waiting, "a released leadership must go to the one who waits")) !== null,
          "the one who waits must win",
        );
      },
    },
    {
      name: "a release that comes after the takeover changes nothing",
      async run(stage) {
        const { name, backends, old, successor } = await takeover(stage);
        await old.release(stage.call()).catch(() => {}); // it may say that it does not know
        await stage.renew(successor);
        equal(
          await stage.soon(
            stage.campaign(backends[2]!, name, { wait: false }),
            "the attempt must be answered",
          ),
          null,
          "a third candidate",
        );
        await stage.leaderIs(backends[2]!, name, { token: successor.token }, "the leader that observers see");
      },
    },
    {
      name: "a release twice, or twice at once, is one release",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        const first = await stage.win(a!, name, { ttlMs: stage.ttlMs(a!, 30_000) });
        await Promise.all([stage.releaseAgain(first), stage.releaseAgain(first)]);
        const second = await stage.win(b!, name, { ttlMs: stage.ttlMs(b!, 30_000) });
        await stage.releaseAgain(first);
        await stage.renew(second);
        await stage.leaderIs(a!, name, { token: second.token }, "the leader that observers see");
      },
    },
    {
      name: "a candidate's old release does not end its own new term",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        const candidate = "again-91ab";
        const first = await stage.win(a!, name, { candidate });
        const second = await stage.win(a!, name, { candidate, ttlMs: stage.ttlMs(a!, 30_000) });
        await first.release(stage.call()).catch(() => {});
        await stage.renew(second);
        await stage.leaderIs(b!, name, { token: second.token }, "the leader that observers see");
      },
    },
    {
      name: "a renewal under way cannot bring back what was released",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        for (let round = 0; round < stage.rounds; round++) {
          const name = stage.name();
          const ttlMs = stage.ttlMs(a!, 60_000);
          const hold = await stage.win(a!, name, { ttlMs });
          const renewing = hold.renew(stage.call()).catch(() => {});
          await stage.release(hold);
          await renewing;
          const next = await stage.soon(
            stage.campaign(b!, name, { ttlMs }),
            "after release and a late renewal leadership must be free",
          );
          check(next !== null && next.token > hold.token, "the next term must have a higher token");
        }
      },
    },
  ],
};
