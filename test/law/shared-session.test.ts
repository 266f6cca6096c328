/** Which terms share the lease of a session, and how thousands of them end. */
import { afterEach, expect, it } from "vitest";
import type { Backend, Candidacy, Election as ElectionType, Hold } from "../../src/index.js";
import { Election, memoryBackend, readClocks } from "../../src/index.js";
import type { ElectionOptions } from "../../src/index.js";
import type { Extension, Session, SessionFollower } from "../../src/seam/backend.js";
import { VirtualClock } from "../../src/testing/index.js";

const TTL_MS = 10_000;
const MARGIN_MS = 1_500;
/** Terms that end without giving the event loop its turn. */
const AT_ONCE = 200;

/** One session for all holds, on the clock of the store's own process. */
class OneSession implements Backend, Session {
  readonly name = "session";
  readonly guarantees = memoryBackend().guarantees;
  readonly followers = new Set<SessionFollower>();
  extension: Extension;
  #token = 0n;

  constructor(clock: VirtualClock) {
    this.extension = { asked: readClocks(clock) };
  }

  follow(follower: SessionFollower): () => void {
    this.followers.add(follower);
    return () => this.followers.delete(follower);
  }

  async campaign({ ttlMs }: Candidacy): Promise<Hold> {
    return {
      ...{ token: ++this.#token, ttlMs, asked: this.extension.asked, session: this },
      renew: async () => this.extension,
      proclaim: async () => this.extension,
      release: async () => {},
    };
  }

  async *observe(): AsyncGenerator<null> {
    yield null;
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

const open: ElectionType[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((election) => election.close()));
});

function election(
  backend: Backend,
  clock: VirtualClock,
  name: string,
  over: Partial<ElectionOptions> = {},
): Election {
  const opened = new Election({ name, backend, clock, ttlMs: TTL_MS, id: "c", ...over });
  open.push(opened);
  return opened;
}

it("terms with another margin, or another clock, have a lease of their own on the same session", async () => {
  const clock = new VirtualClock();
  const backend = new OneSession(clock);
  const other = new VirtualClock();
  await election(backend, clock, "a").campaign();
  await election(backend, clock, "b").campaign();
  expect(backend.followers.size).toBe(1);
  const careful = await election(backend, clock, "c", { renewDeadlineMs: 7_000 }).campaign();
  expect(backend.followers.size).toBe(2);
  expect(careful.remainingMs).toBe(7_000);
  const elsewhere = await election(backend, other, "d").campaign();
  expect(backend.followers.size).toBe(3);
  expect(elsewhere.remainingMs).toBe(TTL_MS - MARGIN_MS);
  // The clock of the others stands still: theirs is not the deadline of this one.
  await other.advance(TTL_MS - MARGIN_MS);
  expect(elsewhere.end?.reason).toBe("expired");
  expect(careful.held).toBe(true);
});

it("a term that begins while the lease of others has run out, unnoticed, does not begin on that lease", async () => {
  const clock = new VirtualClock();
  const backend = new OneSession(clock);
  const old = await election(backend, clock, "a").campaign();
  clock.stall(TTL_MS - MARGIN_MS); // at this very instant; its timers have not fired
  backend.extension = { asked: readClocks(clock) };
  const young = await election(backend, clock, "b").campaign();
  expect(young.remainingMs).toBe(TTL_MS - MARGIN_MS);
  expect(old.held).toBe(false);
  await clock.advance(1_000);
  expect([young.held, old.end?.reason]).toEqual([true, "expired"]);
});

it.each(["lost", "run out"])(
  "thousands of terms whose session has %s end in slices, and nobody has to ask",
  async (how) => {
    const clock = new VirtualClock();
    const backend = new OneSession(clock);
    const terms = 2 * AT_ONCE + 50;
    let ended = 0;
    for (let i = 0; i < terms; i++) {
      const each = election(backend, clock, `e${i}`);
      each.on("ended", () => void ended++);
      await each.campaign();
    }
    if (how === "lost") {
      for (const follower of backend.followers) follower.lost();
      for (let i = 0; i < 10; i++) await Promise.resolve();
      expect(ended, "in one go").toBe(AT_ONCE);
      await clock.advance(0);
    } else await clock.advance(TTL_MS - MARGIN_MS);
    expect(ended).toBe(terms);
    expect([clock.timers, backend.followers.size]).toEqual([0, 0]);
  },
);

it("terms whose listeners take long end in short goes: the event loop gets its turn in between, and none is held meanwhile", async () => {
  const clock = new VirtualClock();
  const backend = new OneSession(clock);
  const names = Array.from({ length: 100 }, (_, i) => `e${i}`);
  const terms = await Promise.all(names.map((name) => election(backend, clock, name).campaign()));
  let heard = 0;
  for (const { signal } of terms)
    signal.addEventListener("abort", () => {
      heard++;
      clock.stall(1);
    });
  for (const follower of backend.followers) follower.lost();
  expect(heard).toBe(11);
  await clock.advance(1);
  expect(heard).toBe(22);
  expect(terms.filter(({ held }) => held)).toEqual([]);
  await clock.advance(200);
  expect(terms.filter(({ end }) => end?.reason === "revoked").length).toBe(100);
});
