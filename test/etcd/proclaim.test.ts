/** A proclamation writes a value. It does not extend the lease, and so it must not extend the term. On virtual time. */
import { afterEach, expect, test } from "vitest";
import type { Term } from "../../src/index.js";
import { EtcdModel } from "../support/etcd-model.js";

const TTL_MS = 10_000;
const MARGIN_MS = 1_500;

let model: EtcdModel;
afterEach(() => model.close());

async function lead(process: ReturnType<EtcdModel["process"]>): Promise<Term> {
  const won: Term[] = [];
  void process
    .election("e")
    .campaign()
    .then((term) => won.push(term));
  await model.pass(50);
  const [term] = won;
  if (term === undefined) throw new Error("nobody leads");
  return term;
}

test("a value that was published leaves the deadline where it was", async () => {
  model = new EtcdModel();
  const term = await lead(model.process(TTL_MS));
  await model.pass(1_000);
  const left = term.remainingMs;
  expect(left).toBeLessThan(TTL_MS - MARGIN_MS - 900);
  await term.proclaim("first");
  expect(term.remainingMs).toBe(left);
  await model.pass(500);
  await term.proclaim("second");
  expect(term.remainingMs).toBe(left - 500);
  expect(term.value).toBe("second");
  await model.pass(2_000);
  expect(term.remainingMs, "a renewal does move it").toBeGreaterThan(left - 500);
});

test("a leader whose keep-alives are lost ends in time, however much it proclaims", async () => {
  model = new EtcdModel();
  const [leader, next] = [model.process(TTL_MS), model.process(TTL_MS)];
  const term = await lead(leader);
  leader.lost.add("keep-alive");
  let follower: Term | undefined;
  void next
    .election("e")
    .campaign()
    .then((won) => (follower = won));
  let both = 0;
  let proclaimed = 0;
  for (let ms = 0; ms < 2 * TTL_MS; ms += 250) {
    if (term.held)
      void term.proclaim(`at ${ms}`).then(
        () => proclaimed++,
        () => {},
      );
    await model.pass(250);
    if (term.held && follower?.held === true) both += 250;
  }
  expect(proclaimed).toBeGreaterThan(20);
  expect(term.end).toMatchObject({ reason: "expired", drained: false });
  expect(term.lastedMs).toBeLessThanOrEqual(TTL_MS - MARGIN_MS);
  expect(follower?.held).toBe(true);
  expect(both).toBe(0);
});
