/**
 * One of five instances of the dialer, a program of its own. All of them have
 * the same list and the same nine o'clock.
 */
import { fileBackend } from "../../backends/file/index.js";
import { systemClock } from "../../kit/clock.js";
import { sleep } from "../../kit/wait.js";
import { schedule } from "../../cron/index.js";
import { tokenFetch } from "../../fencing/index.js";
import type { Fetch } from "../../fencing/index.js";
import { nineOClock } from "./calendar.js";
import { CALL_HEADER, isOrders } from "./wire.js";
import type { Call, Orders, Word } from "./wire.js";

const TTL_MS = 1_500;
/** A short talk: for people to watch. */
const TALK_MS = 90;

const never = new AbortController().signal;

function tell(word: Word): void {
  if (process.connected) process.send?.(word, undefined, undefined, () => {});
}

async function ring(send: Fetch, exchange: string, call: Call): Promise<void> {
  const response = await send(exchange, {
    method: "POST",
    headers: { [CALL_HEADER]: JSON.stringify(call) },
  });
  await response.arrayBuffer();
}

/** Without Conclave: a clock and a list, and no word to the others. */
async function dialByTheClock({ name, exchange, customers, plain }: Orders): Promise<void> {
  await sleep(systemClock, plain - systemClock.wall(), never);
  for (const customer of customers) {
    await ring(fetch, `${exchange}plain`, { customer, list: plain, by: name });
    await sleep(systemClock, TALK_MS, never);
  }
}

/** With Conclave: the same list, once on all instances together. */
async function dialOnSchedule({ name, directory, exchange, customers, plain }: Orders): Promise<void> {
  const calls = await schedule({
    name: "call-list",
    id: name,
    cron: nineOClock(plain),
    backend: fileBackend({ directory }),
    ttlMs: TTL_MS,
    // Nobody may be left out: the next leader begins the list again, and the exchange knows whom it has called.
    mode: "at-least-once",
    misfire: "all",
    overlap: "wait",
    job: async ({ scheduledAt, term }) => {
      const send = tokenFetch(term.token);
      const list = scheduledAt.getTime();
      await ring(send, exchange, { customer: null, list, by: name });
      for (const customer of customers) {
        await ring(send, exchange, { customer, list, by: name });
        await sleep(systemClock, TALK_MS, never);
      }
    },
  });
  calls.election.on("elected", () => tell({ kind: "leads" }));
  calls.election.on("ended", () => tell({ kind: "follows" }));
  calls.on("finished", ({ run }) => void (run.state === "done" && tell({ kind: "settled", list: run.at })));
}

// Ctrl-C in the terminal reaches every process; what happens then is not for this one to say.
process.on("SIGINT", () => {});
process.on("disconnect", () => process.exit(0));
process.once("message", (orders: unknown) => {
  if (!isOrders(orders)) return process.exit(2);
  tell({ kind: "follows" });
  void dialOnSchedule(orders);
  if (!orders.again) void dialByTheClock(orders);
});
tell({ kind: "ready" });
