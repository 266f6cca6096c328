/**
 * A process that leads many elections, or stands so often in one, and hands over
 * when it is told to: a line "resign" on its input. It says when it did.
 */
import { createInterface } from "node:readline";
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/election/election.js";
import type { Term } from "../../src/index.js";
import { machineMs } from "../machine-clock.js";

const [endpoint = "", mode = "elections", count = "1"] = process.argv.slice(2);
const say = (event: string, more: object = {}): void =>
  void process.stdout.write(`${JSON.stringify({ event, ...more })}\n`);
const backend = etcdBackend({ endpoints: endpoint, env: {} });
const stand = (name: string): Election => new Election({ name, backend, ttlMs: 10_000 });

/** Many elections: the first is given up and campaigned for again, behind whoever waits for it. */
async function elections(): Promise<void> {
  const terms = await Promise.all(
    Array.from({ length: Number(count) }, (_, i) => stand(`many/${i}`).campaign()),
  );
  const again = stand("many/0");
  let [term] = terms;
  say("ready");
  for await (const _ of createInterface({ input: process.stdin })) {
    say("resigning", { at: machineMs() });
    await term!.resign();
    term = await again.campaign();
    say("back");
  }
}

/** Many candidates of one election: whoever leads resigns, stands again, and the next one leads. */
async function candidates(): Promise<void> {
  let leads: (term: Term) => void = () => {};
  const next = (): Promise<Term> => new Promise((resolve) => (leads = resolve));
  const join = (): void =>
    void stand("crowd")
      .campaign()
      .then((term) => leads(term));
  const first = next();
  for (let i = 0; i < Number(count); i++) join();
  let term = await first;
  say("ready");
  for await (const _ of createInterface({ input: process.stdin })) {
    const at = machineMs();
    const following = next();
    void term.resign();
    join();
    term = await following;
    say("handover", { ms: machineMs() - at });
  }
}

await (mode === "elections" ? elections() : candidates());
