/** Observers are told who leads: the present leader first, the newest always, never an older one. */
import type { Leader } from "../../../seam/backend.js";
import { check, equal, show } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

/** A leader's value is any text up to 16 KiB. */
const VALUES = [
  "",
  " ",
  "http://10.0.0.1:80/?a=b&c=d",
  'quotes " and \\ and {"json":[1]}',
  "line\nline\r\n\ttab",
  "ünïcödé 漢字 🚀",
  "0",
  "null",
  "x".repeat(16 * 1024),
];

function neverBack(seen: readonly (Leader | null)[]): void {
  let highest = -1n;
  for (const leader of seen) {
    if (leader === null) continue;
    check(
      leader.token >= highest,
      `token ${leader.token} was observed after ${highest}: ${show(seen.map((sight) => sight?.token ?? null))}`,
    );
    highest = leader.token;
  }
}

async function handovers(stage: Stage): Promise<void> {
  const [a, b, watcher] = await stage.openMany(3);
  const name = stage.name();
  const follower = stage.follow(watcher!, name);
  await follower.sees(
    (leader) => leader === null,
    "an observer of leadership that was never held must see null",
  );
  let last = -1n;
  for (let round = 0; round < 6; round++) {
    const backend = round % 2 === 0 ? a! : b!;
    const from = follower.seen.length;
    const hold = await stage.win(backend, name, {
      value: `round ${round}`,
      ttlMs: stage.ttlMs(backend, 30_000),
    });
    await follower.sees(
      (leader) => leader?.token === hold.token && leader.value === `round ${round}`,
      `the leader of round ${round} must be seen`,
      from,
    );
    await stage.release(hold);
    // The next one may come so fast that nobody is seen in between, but the last vacancy must show.
    if (round === 5)
      await follower.sees((leader) => leader === null, "the vacancy after release must be seen", from);
    last = hold.token;
  }
  neverBack(follower.seen);
  const seenLast = follower.seen.findLast((leader) => leader !== null);
  equal(seenLast?.token, last, "the last leader seen");
}

/** One who reads slowly may miss what came between, but must arrive at the newest. */
async function slowReader(stage: Stage): Promise<void> {
  const [a, b] = await stage.openMany(2);
  const name = stage.name();
  const hold = await stage.win(a!, name, { value: "0", ttlMs: stage.ttlMs(a!, 60_000) });
  const stop = new AbortController();
  const sights = b!.observe(name, { signal: stop.signal, pollMs: 300, attemptMs: 5_000 });
  const observation = sights[Symbol.asyncIterator]();
  const values: number[] = [];
  const read = async (): Promise<void> => {
    let sight = await observation.next();
    // A read that lags may not show the leader yet.
    while (values.length === 0 && sight.value === null) sight = await observation.next();
    check(sight.done !== true, "the observation must not end by itself");
    equal(sight.value?.token, hold.token, "the token of a value");
    values.push(Number(sight.value!.value));
  };
  await stage.soon(read(), "the first sight");
  for (let round = 1; round <= 20; round++)
    await stage.soon(hold.proclaim(String(round), stage.call()), "proclaiming");
  while (values.at(-1) !== 20)
    await stage.soon(read(), `the newest value must be seen; so far ${show(values)}`);
  check(
    values.every((value, index) => index === 0 || value > values[index - 1]!),
    `values were seen out of order: ${show(values)}`,
  );
  stop.abort();
  await stage.soon(Promise.allSettled([observation.next()]), "an aborted observation must end");
}

export const observe: Group = {
  name: "observers see who leads",
  cases: [
    {
      name: "nobody, when nobody ever led",
      async run(stage) {
        equal(await stage.leader(await stage.open(), stage.name()), null, "the leader of a new election");
      },
    },
    {
      name: "the present leader first, with candidate, token and value",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        const candidate = "seen-77aa";
        const hold = await stage.win(a!, name, {
          candidate,
          value: "here I am",
          ttlMs: stage.ttlMs(a!, 30_000),
        });
        const wanted = { candidate, token: hold.token, value: "here I am" };
        for (const backend of [a!, b!]) await stage.leaderIs(backend, name, wanted, "the leader");
      },
    },
    { name: "every change, in order, and the vacancy at the end", run: handovers },
    { name: "the newest value, however slowly they read", run: slowReader },
    {
      name: "values as they were proclaimed",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        const hold = await stage.win(a!, name, { ttlMs: stage.ttlMs(a!, 60_000) });
        for (const value of VALUES) {
          await stage.soon(hold.proclaim(value, stage.call()), "proclaiming must be answered");
          await stage.leaderIs(b!, name, { value }, "the value observers see");
        }
        // A renewal does not bring an older value back.
        await stage.renew(hold);
        await stage.leaderIs(b!, name, { value: VALUES.at(-1)! }, "the value after a renewal");
      },
    },
    {
      name: "nobody, when a leader has gone silent for longer than its lease",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        const name = stage.name();
        const hold = await stage.win(a!, name);
        const follower = stage.follow(b!, name);
        await follower.sees((leader) => leader?.token === hold.token, "the leader must be seen");
        await follower.sees((leader) => leader === null, "the end of a silent leader must be seen");
      },
    },
  ],
};
