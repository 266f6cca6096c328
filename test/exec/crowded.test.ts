/**
 * A host with thousands of processes, two candidates that reach one etcd, each over its own cable, and a command that
 * tries to get away. The leader is cut off from its store and its wrapper stopped; and never do both commands live.
 * CONCLAVE_LONG=1 only: it takes minutes, and memory for the crowd.
 */
import { afterAll, afterEach, describe, it } from "vitest";
import { cannotUse, ownCgroup } from "../../src/exec/cgroup.js";
import { asOther, Crowd, DelegatedCgroup, ESCAPING, lackingUsers, scratchForOther } from "./escaping.js";
import { Duel, mixed } from "./faults.js";
import type { Fault } from "./faults.js";
import { lacking, Network } from "./network.js";

const LONG = process.env["CONCLAVE_LONG"] === "1";
const CROWD = 9_000;
const reason = LONG ? (lackingUsers() ?? lacking()) : "CONCLAVE_LONG=1 only";
const own = ownCgroup();
const noCgroup = LONG && !("why" in own) ? cannotUse(own.directory) : "no cgroup";

type Counts = Readonly<Partial<Record<Fault, number>>>;
const MANY: Counts = { cut: 50, stop: 50 };
const SOME: Counts = { cut: 10, stop: 10, kill: 5 };

interface Kind {
  readonly name: string;
  readonly faults: Counts;
  readonly flags: readonly string[];
  readonly through: (cgroup: () => DelegatedCgroup) => readonly string[];
  readonly cgroup: boolean;
}

const KINDS: readonly Kind[] = [
  { name: "root, cgroup", faults: MANY, flags: [], through: () => [], cgroup: true },
  { name: "another user, scan", faults: MANY, flags: [], through: asOther, cgroup: false },
  { name: "root, scan", faults: SOME, flags: ["--contain", "scan"], through: () => [], cgroup: false },
  {
    name: "another user, delegated cgroup",
    faults: SOME,
    flags: ["--contain", "cgroup"],
    through: (cgroup) => cgroup().through,
    cgroup: true,
  },
];

describe.skipIf(reason !== undefined)(`${CROWD} processes on the host (${reason ?? "all of it"})`, () => {
  const cgroups: DelegatedCgroup[] = [];
  let network: Network | undefined;
  let crowd: Crowd | undefined;

  afterEach(async () => {
    await network?.close();
    await crowd?.close();
    network = crowd = undefined;
  });

  afterAll(async () => {
    for (const cgroup of cgroups) await cgroup.remove();
  });

  for (const kind of KINDS.filter(({ cgroup }) => !cgroup || noCgroup === undefined)) {
    const faults = JSON.stringify(kind.faults);
    it(`${kind.name}: never two commands at once: ${faults}`, { timeout: 1_500_000 }, async () => {
      const { directory, beats } = scratchForOther();
      network = new Network(["one", "two"]);
      const where = await network.startEtcd(directory);
      crowd = await Crowd.open(CROWD);
      const cgroup = (): DelegatedCgroup => {
        cgroups.push(new DelegatedCgroup(`crowded-${cgroups.length}`));
        return cgroups.at(-1)!;
      };
      const places = network.places.map((place) => ({
        ...place,
        through: [...place.through, ...kind.through(cgroup)],
      }));
      const flags = (index: number): string[] => [
        "--backend",
        `etcd://${where(index)}`,
        "--ttl",
        "2s",
        ...kind.flags,
      ];
      const outcome = await new Duel(places, beats, flags, { subject: ESCAPING }).run(mixed(kind.faults));
      console.log(
        `${kind.name}, ${CROWD} processes on the host, ${faults}: ${outcome.terms} terms, 0 ms overlap, ` +
          `shortest gap ${outcome.shortestGapMs.toFixed(1)} ms`,
      );
    });
  }
});
