/**
 * Two hosts that reach one etcd, each over its own cable: the leader is cut off
 * from its store, its wrapper killed, its wrapper stopped; and never do the
 * commands of both hosts live at the same instant.
 */
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { Duel, mixed } from "./faults.js";
import { lacking, Network } from "./network.js";
import { isAlive, program, scratch, until, Wrapped } from "./wrapped.js";

const LONG = process.env["CONCLAVE_LONG"] === "1";
const FAULTS = LONG ? { cut: 50, kill: 50, stop: 20 } : { cut: 3, kill: 3, stop: 2 };
const reason = lacking();

describe.skipIf(reason !== undefined)(
  `two hosts and an etcd${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let network: Network | undefined;

    // Before the wrappers are ended by the hook of wrapped.ts (hooks run in reverse order), cables are whole again.
    afterEach(async () => {
      await network?.close();
      network = undefined;
    });

    it(
      `never run two commands at once: ${JSON.stringify(FAULTS)}`,
      async () => {
        const directory = scratch();
        network = new Network(["one", "two"]);
        const where = await network.startEtcd(directory);
        const duel = new Duel(network.places, join(directory, "beats"), (index) => [
          ...["--backend", `etcd://${where(index)}`, "--ttl", "2s"],
        ]);
        const outcome = await duel.run(mixed(FAULTS));
        console.log(
          `exec on two hosts with etcd, ${JSON.stringify(FAULTS)}: ${outcome.terms} terms, 0 ms overlap, ` +
            `shortest gap ${outcome.shortestGapMs.toFixed(1)} ms, last beat at most ` +
            `${Math.max(...outcome.afterKillMs).toFixed(1)} ms after the wrapper was killed`,
        );
      },
      LONG ? 3_600_000 : 180_000,
    );

    it("J7 the key is deleted by hand: SIGKILL at once", async () => {
      network = new Network(["one"]);
      const where = await network.startEtcd(scratch());
      const [place] = network.places;
      const command = ["--", process.execPath, program("signalled"), "command"];
      const wrapped = new Wrapped(["x", "--backend", `etcd://${where(0)}`, "--ttl", "5s", ...command], {
        through: place!.through,
      });
      const pid = Number((await wrapped.line(/^command up/)).split(" ")[2]);
      network.etcdctl("del", "--prefix", "x/");
      await until(() => !isAlive(pid), 2_000);
      expect(wrapped.out.some((line) => /SIGTERM/.test(line))).toBe(false);
      await wrapped.line(/revoked/, { from: "err" });
    });
  },
);
