/** The watch stream without a server: what is sent, and when. */
import { beforeEach, describe, expect, it } from "vitest";
import { Watches } from "../../src/backends/etcd/client/watches.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

/** First byte of a request: which of its fields is set. */
const KINDS = new Map([
  [0x0a, "create"],
  [0x12, "cancel"],
]);

let clock: VirtualClock;
let sent: string[];
let watches: Watches;

beforeEach(async () => {
  clock = new VirtualClock();
  sent = [];
  const stream = { send: (bytes: Uint8Array) => void sent.push(KINDS.get(bytes[0]!)!), close: () => {} };
  const transport = {
    open: async () => ({ stream, who: "etcd", token: undefined }),
    invalidate: () => false,
  };
  watches = new Watches(transport, clock);
  watches.add({ key: "first" }, () => {});
  await clock.advance(1);
  expect(sent).toEqual(["create"]);
  sent = [];
});

describe("etcd: watches on one stream", () => {
  const unhurried = (key: string): (() => void) =>
    watches.add({ key, startRevision: 5n, unhurried: true }, () => {});

  it("an unhurried one is asked for a moment later; one that ends before that costs nothing", async () => {
    unhurried("a");
    const end = unhurried("b");
    watches.add({ key: "c" }, () => {});
    expect(sent).toEqual(["create"]); // c
    end();
    await clock.advance(10);
    expect(sent).toEqual(["create", "create"]);
    expect(clock.timers).toBe(0);
  });

  it("thousands are asked for in portions, and ended in portions", async () => {
    const ends = Array.from({ length: 600 }, (_, i) => unhurried(`k${i}`));
    await clock.advance(5);
    expect(sent.length).toBe(250);
    await clock.advance(10);
    expect(sent.length).toBe(600);
    for (const end of ends) end();
    await clock.advance(100);
    expect(sent.slice(600)).toEqual(ends.map(() => "cancel"));
    expect(clock.timers).toBe(0);
  });

  it("those that wait for that are asked for once when the stream is opened anew", async () => {
    const handlers: { ended(error: undefined): void }[] = [];
    const stream = { send: (bytes: Uint8Array) => void sent.push(KINDS.get(bytes[0]!)!), close: () => {} };
    const transport = {
      open: async (each: { ended(error: undefined): void }) => {
        handlers.push(each);
        return { stream, who: "etcd", token: undefined };
      },
      invalidate: () => false,
    };
    watches = new Watches(transport, clock);
    watches.add({ key: "first" }, () => {});
    await clock.advance(1);
    sent = [];
    unhurried("a");
    handlers[0]!.ended(undefined);
    await clock.advance(1_000);
    expect(handlers.length).toBe(2);
    expect(sent).toEqual(["create", "create"]);
  });
});
