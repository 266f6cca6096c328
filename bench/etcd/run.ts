/**
 * etcd: round trip, handover, idle load, ten thousand elections in one process,
 * and what a black hole does. Servers are started here, on this machine, so all
 * figures are for a loopback network.
 */
import { existsSync } from "node:fs";
import type { Row } from "../measure.js";
import { EtcdServer, hasEtcd } from "../../test/support/etcd-server.js";
import { blackHole } from "./black-hole.js";
import { byHand } from "./by-hand.js";
import { handover, roundTrip } from "./handover.js";
import { idle } from "./idle.js";
import { idleMany } from "./idle-many.js";
import { many } from "./many.js";

function memory(): string | undefined {
  return existsSync("/dev/shm") ? "/dev/shm" : undefined;
}

export default async function* bench(): AsyncGenerator<Row> {
  if (!hasEtcd()) {
    yield { what: "skipped", result: "etcd and etcdctl are not installed (make servers)" };
    return;
  }
  const wanted = process.env["BENCH_PART"];
  const parts = [roundTrip, handover, byHand, idle, many, idleMany, blackHole];
  if (wanted !== undefined && !parts.some(({ name }) => name === wanted)) {
    throw new Error(
      `no part ${wanted} of this bench: BENCH_PART is one of ${parts.map(({ name }) => name).join(", ")}`,
    );
  }
  for (const part of parts) {
    if (wanted !== undefined && part.name !== wanted) continue;
    // The disk takes its time for both sides alike, and never the same: without it the clients are compared.
    const server = await EtcdServer.start({ home: part === handover ? memory() : undefined });
    try {
      yield* part(server);
    } finally {
      await server.stop();
    }
  }
}
