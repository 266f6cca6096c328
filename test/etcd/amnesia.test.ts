/** etcd is wiped, or restored from a backup, under candidates that have seen more. On virtual time. */
import { afterEach, describe, expect, test } from "vitest";
import type { Election, Leader, Term } from "../../src/index.js";
import { EtcdModel } from "../support/etcd-model.js";
import type { ModelProcess } from "../support/etcd-model.js";

const TTL = 6_000;

describe.each(["queue", "key"] as const)("layout %s", (layout) => {
  let model: EtcdModel;
  afterEach(() => model.close());

  function start(): ModelProcess[] {
    model = new EtcdModel();
    return Array.from({ length: 3 }, () => model.process(TTL, layout));
  }

  function errorsOf(election: Election): { readonly code?: unknown; readonly message?: unknown }[] {
    const errors: Error[] = [];
    election.on("error", ({ error }) => void (error instanceof Error && errors.push(error)));
    return errors;
  }

  const regressions = (errors: readonly { readonly code?: unknown }[]): number =>
    errors.filter(({ code }) => code === "token-regression").length;

  /** Someone leads with a high token, someone waits for it, and then the store loses its memory. */
  async function queued(
    lose: (server: EtcdModel["server"], backup: ReturnType<EtcdModel["server"]["backUp"]>) => void,
  ): Promise<{ waiter: Election; terms: Term[]; errors: ReturnType<typeof errorsOf> }> {
    const [leader, waiting] = start();
    const first = leader!.election("e");
    await leader!.election("kept").campaign();
    const backup = model.server.backUp();
    model.server.raise(10_000n);
    const term = await first.campaign();
    const waiter = waiting!.election("e");
    const errors = errorsOf(waiter);
    const terms: Term[] = [];
    const work = (won: Term): Promise<void> => {
      terms.push(won);
      return new Promise((resolve) => won.signal.addEventListener("abort", () => resolve(), { once: true }));
    };
    void waiter.run(work);
    await model.pass(100);
    lose(model.server, backup);
    await model.pass(TTL);
    expect(term.held).toBe(false);
    return { waiter, terms, errors };
  }

  test("wiped: a candidate that waited behind a token does not lead with a lower one, and says why", async () => {
    const { terms, errors } = await queued((server) => server.restore());
    await model.pass(3 * TTL);
    expect(terms).toEqual([]);
    expect(regressions(errors)).toBeGreaterThan(1);
  });

  test("restored: neither does it after the store went back", async () => {
    const { terms, errors } = await queued((server, backup) => server.restore(backup));
    await model.pass(3 * TTL);
    expect(terms).toEqual([]);
    expect(regressions(errors)).toBeGreaterThan(1);
  });

  test("it leads by itself once the store's revision is higher again", async () => {
    const { terms } = await queued((server) => server.restore());
    model.server.raise(100_000n);
    await model.pass(TTL);
    expect(terms.map(({ held }) => held)).toEqual([true]);
  });

  test("it leads when an operator accepts the lower tokens", async () => {
    const { waiter, terms } = await queued((server) => server.restore());
    waiter.acceptRegression();
    await model.pass(TTL);
    expect(terms.map(({ held }) => held)).toEqual([true]);
  });

  test("an observer names the leader of the wiped store, and says that its tokens went back", async () => {
    const [leader, watching, fresh] = start();
    const first = leader!.election("e");
    model.server.raise(10_000n);
    await first.campaign();
    const watcher = watching!.election("e");
    const errors = errorsOf(watcher);
    const seen: (Leader | null)[] = [];
    watcher.on("leader", (event) => void seen.push(event.leader));
    await model.pass(500);
    model.server.restore();
    leader!.cut = true;
    const term = await fresh!.election("e").campaign();
    await model.pass(TTL);
    expect(seen.at(-1)).toEqual(await watcher.leader());
    expect(seen.at(-1)?.token).toBe(term.token);
    expect(regressions(errors)).toBe(1);
  });

  test("a leader that comes again, behind those who waited for it, is no regression", async () => {
    const [leader, waiting] = start();
    const first = leader!.election("e");
    const term = await first.campaign();
    waiting!.deaf = true; // only its renewals tell it what happens to the key it waits for
    const waiter = waiting!.election("e");
    const errors: unknown[] = [];
    const next: Term[] = [];
    waiter.campaign().then(
      (won) => next.push(won),
      (error: unknown) => errors.push(error),
    );
    await model.pass(100);
    await term.resign();
    void first.campaign().catch(() => {});
    await model.pass(TTL);
    expect(errors).toEqual([]);
    expect(next.length === 1 || first.leading).toBe(true);
  });
});
