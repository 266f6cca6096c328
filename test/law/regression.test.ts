/** A store that forgets: what a candidate has seen is the least it leads with, and going back is never silent. */
import { afterEach, expect, test } from "vitest";
import { type Backend, type Candidacy, Election, type Hold, type Leader, Lock } from "../../src/index.js";
import { memoryBackend, readClocks, systemClock } from "../../src/index.js";
import { deferred } from "../../src/kit/wait.js";

/** A store whose answers are set by hand. */
class Puppet implements Backend {
  readonly name = "puppet";
  readonly guarantees = memoryBackend().guarantees;
  readonly records = memoryBackend().records;
  /** What the next campaigns meet before they are granted their token. */
  meets: bigint[] = [];
  grants = 0n;
  released: bigint[] = [];
  readonly leaders: (Leader | null | Error)[] = [];
  #more = deferred<void>();

  async campaign({ ttlMs }: Candidacy, { seen }: Parameters<Backend["campaign"]>[1]): Promise<Hold | null> {
    for (const token of this.meets) seen?.(token);
    const token = this.grants;
    const asked = readClocks(systemClock);
    return {
      ...{ token, asked, ttlMs },
      renew: async () => ({ asked: readClocks(systemClock) }),
      proclaim: async () => ({ asked: readClocks(systemClock) }),
      release: async () => void this.released.push(token),
    };
  }

  show(...leaders: (Leader | null | Error)[]): void {
    this.leaders.push(...leaders);
    this.#more.resolve();
    this.#more = deferred();
  }

  async *observe(_: string, { signal }: { signal: AbortSignal }): AsyncGenerator<Leader | null> {
    while (!signal.aborted) {
      const next = this.leaders.shift();
      if (next instanceof Error) throw next;
      if (next !== undefined) yield next;
      else await Promise.race([this.#more.promise, aborted(signal)]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

const leader = (token: bigint): Leader => ({ candidate: `c${token}`, token, value: "" });

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each[Symbol.asyncDispose]();
});

function open(): { puppet: Puppet; election: Election; errors: unknown[] } {
  const puppet = new Puppet();
  const election = new Election({ name: "e", backend: puppet, ttlMs: 3000 });
  const errors: unknown[] = [];
  election.on("error", ({ error }) => errors.push(error));
  opened.push(election);
  return { puppet, election, errors };
}

test.each(["campaign", "tryCampaign"] as const)(
  "%s: a token lower than one that a campaign met is refused, and given back",
  async (how) => {
    const { puppet, election } = open();
    puppet.meets = [51n, 52n, 7n];
    puppet.grants = 2n;
    await expect(election[how]()).rejects.toMatchObject({
      code: "token-regression",
      retriable: false,
      message: expect.stringMatching(/token 2, but .* has to be 52 or higher\..*acceptRegression\(\)/),
    });
    expect(puppet.released).toEqual([2n]);
    expect(election.leading).toBe(false);
  },
);

test("a campaign that was given up has seen what it met", async () => {
  const { puppet, election } = open();
  puppet.meets = [52n];
  puppet.grants = 60n;
  await (await election.campaign()).resign();
  puppet.meets = [];
  puppet.grants = 59n;
  await expect(election.campaign()).rejects.toMatchObject({ code: "token-regression" });
});

test("run() says so and goes on trying: once the store's tokens are higher it leads, without a restart", async () => {
  const puppet = new Puppet();
  const election = new Election({ name: "e", backend: puppet, ttlMs: 600, retryMs: 10 });
  opened.push(election);
  puppet.meets = [52n];
  puppet.grants = 2n;
  const refused = deferred<unknown>();
  election.on("error", ({ error }) => {
    puppet.grants = 53n;
    refused.resolve(error);
  });
  const led = deferred<bigint>();
  const stop = new AbortController();
  const running = election.run(async (term) => led.resolve(term.token), { signal: stop.signal });
  expect(await refused.promise).toMatchObject({ code: "token-regression" });
  expect(await led.promise).toBe(53n);
  stop.abort();
  await running;
});

test("what leader() named counts as seen", async () => {
  const { puppet, election } = open();
  puppet.show(leader(52n));
  expect(await election.leader()).toMatchObject({ token: 52n });
  puppet.grants = 51n;
  await expect(election.campaign()).rejects.toMatchObject({ code: "token-regression" });
});

test("acceptRegression(): the operator's word that tokens begin anew", async () => {
  const { puppet, election } = open();
  puppet.grants = 52n;
  await (await election.campaign()).resign();
  puppet.grants = 2n;
  await expect(election.campaign()).rejects.toMatchObject({ code: "token-regression" });
  election.acceptRegression();
  const term = await election.campaign();
  expect(term.token).toBe(2n);
  await term.resign();
  puppet.grants = 1n;
  await expect(election.campaign()).rejects.toMatchObject({ code: "token-regression" });
});

test("a lock's tokens are accepted anew in the same way", async () => {
  const puppet = new Puppet();
  const lock = new Lock({ name: "l", backend: puppet, ttlMs: 3000 });
  opened.push(lock);
  puppet.meets = [9n];
  puppet.grants = 3n;
  await expect(lock.acquire()).rejects.toMatchObject({ code: "token-regression" });
  puppet.meets = [];
  lock.acceptRegression();
  expect((await lock.acquire()).token).toBe(3n);
});

test.each([
  ["at once", [leader(52n), leader(2n)]],
  ["after nobody led", [leader(52n), null, leader(2n)]],
  ["after the store was down", [leader(52n), new Error("connection lost"), null, leader(2n)]],
])("observe() names the leader of a store that went back, and says so first: %s", async (_, shown) => {
  const puppet = new Puppet();
  const election = new Election({ name: "e", backend: puppet, ttlMs: 3000, retryMs: 10 });
  opened.push(election);
  const told: unknown[] = [];
  election.on("error", ({ error }) => told.push(error));
  puppet.show(...shown, leader(3n), null, leader(3n));
  for await (const each of election.observe()) {
    told.push(each?.token ?? null);
    if (each?.token === 3n) break;
  }
  const codes = told.map((each) => (each instanceof Error && "code" in each ? each.code : each));
  expect(codes.filter((each) => typeof each === "string")).toEqual(["token-regression"]);
  expect(codes.slice(codes.indexOf("token-regression"))).toEqual(["token-regression", 2n, 3n]);
});

test("a term that has ended stays ended, and is no regression", async () => {
  const { puppet, election, errors } = open();
  puppet.show(leader(4n), null, leader(4n), null, leader(5n));
  const told: (bigint | null)[] = [];
  for await (const each of election.observe()) {
    told.push(each?.token ?? null);
    if (each?.token === 5n) break;
  }
  expect(told).toEqual([4n, null, 5n]);
  expect(errors).toEqual([]);
});
