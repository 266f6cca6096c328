/** A process that campaigns in many elections at once and holds what it wins. */
import { etcdBackend } from "../../src/backends/etcd/index.js";
import { Election } from "../../src/election/election.js";
import { machineMs } from "../machine-clock.js";

const [endpoint = "", count = "0"] = process.argv.slice(2);
const say = (event: string, more: object): void =>
  void process.stdout.write(`${JSON.stringify({ event, ...more })}\n`);

const backend = etcdBackend({ endpoints: endpoint, env: {} });
const started = performance.now();
let led = 0;
const won = (): void => {
  led++;
  if (led === 1) say("first", { at: machineMs() });
  if (led === Number(count)) say("all", { at: machineMs(), wonMs: performance.now() - started });
};
for (let i = 0; i < Number(count); i++)
  void new Election({ name: `many/${i}`, backend, ttlMs: 10_000 }).campaign().then(won);
