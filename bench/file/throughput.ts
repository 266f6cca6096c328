/**
 * A process of its own: how many times a second it gets a lock and gives it back.
 * Told by its argument what to use and where; prints one number.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import lockfile from "proper-lockfile";
import { fileBackend } from "../../src/backends/file/index.js";
import { Lock } from "../../src/lock/lock.js";
import { machineMs } from "./protocol.js";
import type { Speed, Throughput } from "./protocol.js";

/** One acquisition and its release, of the lock with this number. */
type Cycle = (lock: number) => Promise<void>;

function conclave({ directory, atOnce }: Throughput): Cycle {
  const backend = fileBackend({ directory });
  const locks = Array.from({ length: atOnce }, (_, lock) => new Lock({ name: `lock-${lock}`, backend }));
  return (lock) => locks[lock]!.withLock(() => {});
}

function properLockfile({ directory, atOnce }: Throughput): Cycle {
  const files = Array.from({ length: atOnce }, (_, lock) => join(directory, `lock-${lock}`));
  for (const file of files) fs.writeFileSync(file, "");
  return async (lock) => {
    const release = await lockfile.lock(files[lock]!);
    await release();
  };
}

/** What the disk costs is what is left out: a crash of the machine could then bring a token back. */
function withoutFsync(): void {
  fs.fsync = Object.assign((_: number, done: fs.NoParamCallback) => process.nextTick(done, null), fs.fsync);
  syncBuiltinESMExports();
}

/** Cycles a second, with every lock going round on its own, and what one costs this process. */
async function measure(cycle: Cycle, { atOnce, lastMs }: Throughput): Promise<Speed> {
  const until = machineMs() + lastMs;
  const [start, before] = [machineMs(), process.cpuUsage()];
  let cycles = 0;
  const lane = async (lock: number): Promise<void> => {
    for (; machineMs() < until; cycles++) await cycle(lock);
  };
  await Promise.all(Array.from({ length: atOnce }, (_, lock) => lane(lock)));
  const { user, system } = process.cpuUsage(before);
  return { perSecond: (cycles * 1000) / (machineMs() - start), cpuUs: (user + system) / cycles };
}

const order = JSON.parse(process.argv[2] ?? "{}") as Throughput;
if (!order.fsync) withoutFsync();
const cycle = order.kind === "conclave" ? conclave(order) : properLockfile(order);
await measure(cycle, { ...order, lastMs: order.lastMs / 4 }); // warm
process.stdout.write(`${JSON.stringify(await measure(cycle, order))}\n`);
process.exit(0);
