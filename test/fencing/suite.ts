/**
 * What every fenced resource does, whatever it is made of. A room joins with one
 * call; rooms for other stores need nothing but a `Resource`.
 */
import { expect, test } from "vitest";
import { isConclaveError, StaleLeaderError } from "../../src/index.js";

/** A list of texts that only leaders may add to. */
export interface Resource {
  add(token: bigint, text: string): Promise<void>;
  list(): Promise<string[]>;
  /** The same resource after its process was started anew. */
  restarted(): Promise<Resource>;
}

export interface FencedRoom {
  readonly name: string;
  /** A fresh, empty resource. */
  open(): Promise<Resource>;
  /** Rising tokens this resource can be asked about. Default: any numbers will do. */
  tokens?(): Promise<() => Promise<bigint>>;
}

const BEYOND = 2n ** 53n;

export function fencedResourceSuite(room: FencedRoom): void {
  const rising = async (): Promise<() => Promise<bigint>> => {
    if (room.tokens) return room.tokens();
    let token = BEYOND;
    return async () => ++token;
  };

  test("an older token after a newer one is refused, with both numbers", async () => {
    const resource = await room.open();
    const next = await rising();
    const old = await next();
    await resource.add(old, "old");
    const fresh = await next();
    await resource.add(fresh, "new");
    const refused = await resource.add(old, "stale").catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StaleLeaderError);
    expect(isConclaveError(refused) && refused.code).toBe("stale-leader");
    expect(refused).toMatchObject({ token: old, highest: fresh, retriable: false });
    expect(await resource.list()).toEqual(["old", "new"]);
  });

  test("the same leader may come again", async () => {
    const resource = await room.open();
    const token = await (await rising())();
    for (const text of ["a", "b", "c"]) await resource.add(token, text);
    expect(await resource.list()).toEqual(["a", "b", "c"]);
  });

  test("tokens that differ only beyond 2^53 are told apart", async () => {
    if (room.tokens) return; // this room's tokens are given by its store
    const resource = await room.open();
    await resource.add(BEYOND + 1n, "new");
    await expect(resource.add(BEYOND, "old")).rejects.toMatchObject({ token: BEYOND, highest: BEYOND + 1n });
    const largest = 2n ** 63n - 1n;
    await resource.add(largest, "largest");
    await expect(resource.add(largest - 1n, "old")).rejects.toThrow(StaleLeaderError);
    expect(await resource.list()).toEqual(["new", "largest"]);
  });

  test("a restart does not forget", async () => {
    const resource = await room.open();
    const next = await rising();
    const old = await next();
    await resource.add(old, "old");
    const fresh = await next();
    await resource.add(fresh, "new");
    const again = await resource.restarted();
    await expect(again.add(old, "stale")).rejects.toThrow(StaleLeaderError);
    await again.add(fresh, "newer");
    expect(await again.list()).toEqual(["old", "new", "newer"]);
  });

  test("two resources know nothing of each other", async () => {
    const [a, b] = [await room.open(), await room.open()];
    const next = await rising();
    const old = await next();
    await b.add(old, "b old");
    const fresh = await next();
    await a.add(fresh, "a new");
    if (!room.tokens) await b.add(old, "b again");
    await expect(a.add(old, "stale")).rejects.toThrow(StaleLeaderError);
  });

  test("whatever the order of arrival, nothing of an older leader follows a newer one", async () => {
    const resource = await room.open();
    const next = await rising();
    const tokens: bigint[] = [];
    for (let leader = 0; leader < 4; leader++) tokens.push(await next());
    const writes = tokens.flatMap((token) => Array.from({ length: 6 }, (_, n) => ({ token, n })));
    // A fixed shuffle: the same on every run.
    const order = writes
      .map((write, i) => ({ write, rank: (i * 7919) % 101 }))
      .sort((a, b) => a.rank - b.rank);
    const results = await Promise.all(
      order.map(async ({ write }) => {
        try {
          await resource.add(write.token, `${write.token}.${write.n}`);
          return `${write.token}.${write.n}`;
        } catch (error) {
          if (!(error instanceof StaleLeaderError)) throw error;
          return null;
        }
      }),
    );
    const list = await resource.list();
    const seen = list.map((text) => BigInt(text.split(".")[0]!));
    expect(seen).toEqual([...seen].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
    expect(new Set(list)).toEqual(new Set(results.filter((text) => text !== null)));
    expect(list.length).toBe(new Set(list).size);
    expect(seen.at(-1)).toBe(tokens.at(-1));
  });

  test("what is not a token is refused before anything is done", async () => {
    const resource = await room.open();
    await expect(resource.add(-1n, "x")).rejects.toMatchObject({ code: "invalid" });
    await expect(resource.add(10n ** 20n, "x")).rejects.toMatchObject({ code: "invalid" });
    expect(await resource.list()).toEqual([]);
  });
}
