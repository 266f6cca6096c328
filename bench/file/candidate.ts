/** One candidate process: stands and resigns when told, and says when it was elected. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Election } from "../../src/election/election.js";
import { fileBackend } from "../../src/backends/file/index.js";
import lockfile from "proper-lockfile";
import { machineMs } from "./protocol.js";
import type { Order, Report, Setup } from "./protocol.js";

interface Contender {
  /** Waits to be elected. */
  stand(): Promise<void>;
  resign(): Promise<void>;
}

function conclave({ directory, ttlMs, deadProcessRule }: Setup): Contender {
  const backend = fileBackend({ directory, deadProcessRule });
  const election = new Election({ name: "bench", backend, ttlMs });
  return {
    stand: async () => void (await election.campaign()),
    resign: () => election.resign(),
  };
}

function properLockfile({ directory, ttlMs, retryMs = 1000 }: Setup): Contender {
  const file = join(directory, "bench");
  writeFileSync(file, "", { flag: "a" });
  const retries = { forever: true, factor: 1, minTimeout: retryMs, maxTimeout: retryMs };
  let release = async (): Promise<void> => {};
  return {
    stand: async () => {
      release = await lockfile.lock(file, { retries, ...(ttlMs === undefined ? {} : { stale: ttlMs }) });
    },
    resign: () => release(),
  };
}

const setup = JSON.parse(process.argv[2] ?? "{}") as Setup;
const contender = setup.kind === "conclave" ? conclave(setup) : properLockfile(setup);
const say = (report: Report): void => void process.send?.(report);

async function obey(order: Order): Promise<void> {
  if (order === "usage") {
    const { user, system } = process.cpuUsage();
    say({ event: "usage", cpuMs: (user + system) / 1000, rssMiB: process.memoryUsage.rss() / 2 ** 20 });
  } else if (order === "resign") {
    say({ event: "resigning", atMs: machineMs() });
    await contender.resign();
  } else {
    const elected = contender.stand();
    say({ event: "standing", atMs: machineMs() });
    await elected;
    say({ event: "elected", atMs: machineMs() });
  }
}

process.on("message", (order: Order) => void obey(order));
process.on("disconnect", () => process.exit(0));
