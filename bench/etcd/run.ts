/**
 * etcd: round trip, handover, idle load, ten thousand elections in one process,
 * and what a black hole does. Servers are started here, on this machine, so all
 * figures are for a loopback network.
 */
import { existsSync } from "node:fs";
import { chosen } from "../measure.js";
import type { Row } from "../measure.js";
import { EtcdServer, hasEtcd } from "../../test/support/etcd-server.js";
import { blackHole } from "./black-hole.js";
import { byHand } from "./by-hand.js";
import { handover, roundTrip } from "./handover.js";
import { idle } from "./idle.js";
import { idleMany } from "./idle-many.js";
import { growth } from "./growth.js";
import { many } from "./many.js";
import { scale } from "./scale.js";
import { throughput } from "./throughput.js";

/** With the default numbers; each part of BENCH_PART takes one to three. */
export const minutes = 15;

function memory(): string | undefined {
  return existsSync("/dev/shm") ? "/dev/shm" : undefined;
}

export default async function* bench(): AsyncGenerator<Row> {
  if (!hasEtcd()) {
    yield { what: "skipped", result: "etcd and etcdctl are not installed (make servers)" };
    return;
  }
  const parts = chosen([
    roundTrip,
    handover,
    throughput,
    scale,
    growth,
    byHand,
    idle,
    many,
    idleMany,
    blackHole,
  ]);
  for (const [i, part] of parts.entries()) {
    process.stderr.write(`  part ${i + 1} of ${parts.length}: ${part.name}\n`);
    // The disk takes its time for both sides alike, and never the same: without it the clients are compared.
    const server = await EtcdServer.start({ home: part === handover ? memory() : undefined });
    try {
      yield* part(server);
    } finally {
      await server.stop();
    }
  }
}
