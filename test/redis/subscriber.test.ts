/** Who hears what on the one connection for messages, with a server that answers when the test says so. */
import { expect, it } from "vitest";
import type { Driver, SubscriberEvents } from "../../src/backends/redis/driver.js";
import { Subscriber } from "../../src/backends/redis/subscriber.js";
import { deferred } from "../../src/kit/wait.js";
import { SetClock } from "../support/set-clock.js";

/** `held`: a channel whose subscription is not confirmed before this. */
function serverWith(held: { readonly channel: string; readonly until: Promise<void> }) {
  const subscribed = new Set<string>();
  let events: SubscriberEvents | undefined;
  const driver: Pick<Driver, "subscriber"> = {
    subscriber: (told) => {
      events = told;
      return {
        ready: Promise.resolve(),
        subscribe: async (channel) => {
          if (channel === held.channel) await held.until;
          subscribed.add(channel);
        },
        unsubscribe: async (channel) => subscribed.delete(channel),
        ping: async () => "PONG",
        end: () => {},
      };
    },
  };
  const publish = (channel: string, text: string): void => {
    if (subscribed.has(channel)) events?.message(channel, text);
  };
  return { driver: driver as Driver, publish };
}

it("one who comes while the channel is being left hears it: the subscription is not taken away under it", async () => {
  const confirmed = deferred<void>();
  const server = serverWith({ channel: "slow", until: confirmed.promise });
  const subscriber = new Subscriber(server.driver, new SetClock());
  const stop = new AbortController();
  const hear = (channel: string, signal: AbortSignal, heard: string[] = []) => {
    const armed = deferred<void>();
    const ended = subscriber.hear(
      channel,
      (text) => heard.push(text),
      () => armed.resolve(),
      signal,
    );
    return { armed: armed.promise, ended, heard };
  };
  const leaves = new AbortController();
  const first = hear("election", leaves.signal);
  await first.armed;
  // Behind this one everything else waits for its turn: the leaving of the first, and the coming of the second.
  const slow = hear("slow", stop.signal);
  leaves.abort();
  await first.ended;
  const second = hear("election", stop.signal);
  confirmed.resolve();
  await second.armed;
  server.publish("election", "news");
  expect([first.heard, second.heard]).toEqual([[], ["news"]]);
  stop.abort();
  await Promise.all([slow.ended, second.ended]);
  subscriber.close();
});
