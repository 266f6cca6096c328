/**
 * etcd: round trip, handover, idle load, ten thousand elections in one process,
 * and what a black hole does. Servers are started here, on this machine, so all
 * figures are for a loopback network.
 */
import type { Row } from "../measure.js";
import { EtcdServer, hasEtcd } from "../../test/support/etcd-server.js";
import { blackHole } from "./black-hole.js";
import { byHand } from "./by-hand.js";
import { handover, roundTrip } from "./handover.js";
import { idle } from "./idle.js";
import { many } from "./many.js";

export default async function* bench(): AsyncGenerator<Row> {
  if (!hasEtcd()) {
    yield { what: "skipped", result: "etcd and etcdctl are not installed (make servers)" };
    return;
  }
  const wanted = process.env["BENCH_PART"];
  for (const part of [roundTrip, handover, byHand, idle, many, blackHole]) {
    if (wanted !== undefined && part.name !== wanted) continue;
    const server = await EtcdServer.start();
    try {
      yield* part(server);
    } finally {
      await server.stop();
    }
  }
}
