/**
 * Two hosts and a command that tries to get away by every means that tests know of. However it is contained, and
 * whoever runs it: never do the commands of both hosts live at once.
 */
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { cannotUse, ownCgroup } from "../../src/exec/cgroup.js";
import {
  asOther,
  DelegatedCgroup,
  ESCAPING,
  hasNamespaces,
  lackingUsers,
  NAMESPACED,
  scratchForOther,
} from "./escaping.js";
import { Duel, mixed } from "./faults.js";
import type { Subject } from "./faults.js";

const reason = lackingUsers();
const own = ownCgroup();
const noCgroup = "why" in own ? own.why : cannotUse(own.directory);
const FAULTS = { kill: 1, stop: 1 };

interface Kind {
  readonly name: string;
  readonly flags: readonly string[];
  readonly through: (cgroup: () => DelegatedCgroup) => readonly string[];
  readonly skip?: string | undefined;
  readonly subject?: Subject;
}

const KINDS: readonly Kind[] = [
  { name: "root, cgroup", flags: [], through: () => [], skip: noCgroup },
  { name: "root, scan", flags: ["--contain", "scan"], through: () => [] },
  { name: "another user, scan", flags: [], through: asOther },
  {
    name: "another user, delegated cgroup",
    flags: ["--contain", "cgroup"],
    through: (cgroup) => cgroup().through,
    skip: noCgroup,
  },
  {
    name: "another user, pid namespace",
    flags: [],
    through: asOther,
    skip: reason === undefined && hasNamespaces() ? undefined : "no namespaces",
    subject: NAMESPACED,
  },
];

describe.skipIf(reason !== undefined)(`a command that tries to get away (${reason ?? "all of it"})`, () => {
  const cgroups: DelegatedCgroup[] = [];

  // After the hook of wrapped.ts, which ends what runs in them.
  afterAll(async () => {
    for (const cgroup of cgroups) await cgroup.remove();
  });

  it.each(KINDS)("$name: dead before the next one starts", { timeout: 120_000 }, async (kind) => {
    if (kind.skip !== undefined) return expect(kind.skip).toMatch(/./);
    const { directory, beats } = scratchForOther();
    const cgroup = (): DelegatedCgroup => {
      cgroups.push(new DelegatedCgroup(String(cgroups.length)));
      return cgroups.at(-1)!;
    };
    const places = ["one", "two"].map((name) => ({ name, through: kind.through(cgroup) }));
    const flags = ["--lock-dir", join(directory, "lock"), "--ttl", "2s", ...kind.flags];
    const duel = new Duel(places, beats, () => flags, { subject: kind.subject ?? ESCAPING });
    await duel.run(mixed(FAULTS));
  });
});
