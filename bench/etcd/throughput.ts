/** Locks taken and given back in a second, by one process, beside a program on etcd's own Go library. */
import type { EtcdServer } from "../../test/support/etcd-server.js";
import { type Row, summarize } from "../measure.js";
import { goPeer } from "./go-peer.js";
import { PeerProcess } from "./peer-process.js";

const ROUNDS = 3;
const SECONDS = process.env["BENCH_SECONDS"] ?? "5";
const WIDTHS = [1, 100] as const;

/** In turns, so that whatever else the machine does meets both alike. */
export async function* throughput(server: EtcdServer): AsyncGenerator<Row> {
  const go = await goPeer();
  const [endpoint = ""] = server.endpoints;
  for (const width of WIDTHS) {
    const ours: number[] = [];
    const theirs: number[] = [];
    const cpu: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const mine = new PeerProcess({ script: "cycles.js" }, endpoint, String(width), SECONDS);
      const { perSecond, cpuUsEach } = await mine.said("cycles");
      ours.push(Number(perSecond));
      cpu.push(Number(cpuUsEach));
      await mine.kill();
      if (go === undefined) continue;
      const peer = new PeerProcess({ path: go }, "cycles", endpoint, String(width), SECONDS);
      theirs.push(Number((await peer.said("cycles"))["perSecond"]));
      await peer.kill();
    }
    const [mine, peers] = [summarize(ours).median, summarize(theirs).median];
    const figures = `${Math.round(mine)}/s, ${Math.round(summarize(cpu).median)} µs of CPU each`;
    yield {
      what: `lock taken and given back, ${width} at a time (median of ${ROUNDS})`,
      result: go === undefined ? figures : `${(mine / peers).toFixed(2)} x Go (${figures})`,
      beside: go === undefined ? "Go is not installed" : `Go: ${Math.round(peers)}/s; goal: at least 0.8 x`,
    };
  }
}
