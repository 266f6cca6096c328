/** Release in the name of another process, where the backend offers it: by candidate and token, and nobody else is harmed. */
import type { Backend, Claim } from "../../../seam/backend.js";
import { isRetriable } from "../../../kit/errors.js";
import { check, equal, show } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

/** A backend without `release` has nothing to prove. */
async function claimed(stage: Stage, backend: Backend, claim: Claim): Promise<string | undefined> {
  if (backend.release === undefined) return undefined;
  return stage.soon(backend.release(claim, stage.call()), "releasing a claim must be answered");
}

export const claims: Group = {
  name: "release by another process",
  cases: [
    {
      name: "a leadership that is given back for its candidate goes to the one who waits",
      async run(stage) {
        const [a, b, c] = await stage.openMany(3);
        const election = stage.name();
        const candidate = "gone-51aa";
        const { token } = await stage.win(a!, election, { candidate, ttlMs: stage.ttlMs(a!, 60_000) });
        if (c!.release === undefined) return;
        // A read that lags may not show the leader yet.
        await stage.eventually(
          () => claimed(stage, c!, { election, candidate, token }),
          (answer) => answer === "released",
          "releasing the claim",
        );
        const next = await stage.win(b!, election, { ttlMs: stage.ttlMs(b!, 60_000) });
        check(next.token > token, `the next token (${next.token}) must be higher than ${token}`);
        equal(await claimed(stage, c!, { election, candidate, token }), "not-held", "releasing it once more");
        await stage.renew(next);
      },
    },
    {
      name: "a claim with another token or candidate ends nothing",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const election = stage.name();
        const candidate = "here-77b0";
        const first = await stage.win(a!, election, { candidate, ttlMs: stage.ttlMs(a!, 60_000) });
        await stage.release(first);
        const hold = await stage.win(a!, election, { candidate, ttlMs: stage.ttlMs(a!, 60_000) });
        const wrong = [
          { election, candidate, token: first.token },
          { election, candidate, token: hold.token + 1n },
          { election, candidate: "other-77b1", token: hold.token },
        ];
        for (const claim of wrong) {
          const answer = await claimed(stage, b!, claim);
          check(answer === undefined || answer === "not-held", `a wrong claim was answered with ${answer}`);
        }
        await stage.renew(hold);
        await stage.leaderIs(b!, election, { token: hold.token }, "the leader that observers see");
      },
    },
    {
      name: "a leader that is evicted cannot renew, and nobody leads before its lease is over",
      async run(stage) {
        const [a, b, c] = await stage.openMany(3);
        if (c!.evict === undefined) return; // a backend without it has nothing to prove
        const election = stage.name();
        const candidate = "hung-90c2";
        const ttlMs = stage.ttlMs(a!, 1_500);
        const hold = await stage.win(a!, election, { candidate, ttlMs });
        const claim = { election, candidate, token: hold.token };
        const wrong = { ...claim, token: hold.token + 1n };
        equal(await stage.soon(c!.evict(wrong, stage.call()), "evicting"), "not-held", "a wrong claim");
        const since = stage.now();
        await stage.eventually(
          () => stage.soon(c!.evict!(claim, stage.call()), "evicting must be answered"),
          (answer) => answer !== "not-held",
          "the leader must be evicted, not found missing",
        );
        // A renewal that meets the eviction by its write alone knows only afterwards what it has met.
        await stage.eventually(
          () =>
            hold
              .renew(stage.call())
              .catch((error: unknown) => (isRetriable(error) ? "unknown" : show(error))),
          (answer) => {
            check(answer === "lost" || answer === "unknown", `renewed after the eviction: ${show(answer)}`);
            return answer === "lost";
          },
          "renewing after the eviction",
        );
        equal(await stage.campaign(b!, election, { wait: false, ttlMs }), null, "standing at once");
        const next = await stage.win(b!, election, { ttlMs });
        const waited = stage.now() - since;
        check(waited >= ttlMs * 0.9, `the next one led after ${Math.round(waited)} ms of ${ttlMs}`);
        check(next.token > hold.token, `the next token (${next.token}) must be higher than ${hold.token}`);
        await stage.release(next);
      },
    },
  ],
};
