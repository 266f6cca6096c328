/** One of five instances of the dialer. Started by main.ts, in a process of its own. */
import { openBackend } from "conclave";
import { schedule } from "conclave/cron";
import { tokenFetch } from "conclave/fencing";
import { callTimes } from "./calendar.js";

const [store, exchange, customers] = process.argv.slice(2);
const backend = await openBackend(store);
process.send?.({ ready: true });
const start = await new Promise<number>((resolve) => process.once("message", resolve));

await schedule({
  name: "call-list",
  cron: await callTimes(start),
  backend,
  ttlMs: 1_500,
  // Nobody may be left out: the next leader begins the list again, and the exchange knows whom it has called.
  mode: "at-least-once",
  misfire: "all",
  job: async ({ scheduledAt, term }) => {
    const dial = tokenFetch(term.token);
    for (const customer of customers!.split(",")) {
      const call = JSON.stringify({ customer, list: scheduledAt.getTime(), pid: process.pid });
      await dial(exchange!, { method: "POST", headers: { "x-call": call } });
    }
    process.send?.({ done: scheduledAt.getTime() });
  },
});
process.once("disconnect", () => process.exit(0));
