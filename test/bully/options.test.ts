/** What is refused before anything is opened, and what the command line says. */
import { afterEach, describe, expect, it } from "vitest";
import { bully } from "../../src/backends/bully/entry.js";
import { bullyBackend } from "../../src/backends/bully/index.js";
import { ranked } from "../../src/backends/bully/options.js";
import { Election } from "../../src/election/election.js";
import { openBackend } from "../../src/open.js";
import { KEY, RaftCluster } from "../support/raft-cluster.js";
import { until } from "../support/until.js";

const LIST = "n1@127.0.0.1:7501,n2@127.0.0.1:7502,n3@127.0.0.1:7503";
const after: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of after.splice(0).toReversed()) await end();
});

describe("what Bully refuses", () => {
  it("without unsafe, in one sentence", async () => {
    const sentence = /^Bully has no quorum: in a partition each side has a leader; set unsafe: true/;
    expect(() => bullyBackend({ peers: LIST.split(","), self: "n1", insecure: true })).toThrow(sentence);
    await expect(openBackend(`bully://${LIST}?self=n1&insecure=true`)).rejects.toThrow(sentence);
  });

  it.each([
    [`bully://${LIST}?self=n9&unsafe=true&insecure=true`, /self is "n9".*n1, n2, n3/],
    [`bully://${LIST}?self=n1&unsafe=true`, /shared key/],
    [`bully://a@10.0.0.1:1?self=a&unsafe=true&insecure=true`, /of this machine/],
    [`bully://${LIST}?self=n1&unsafe=yes`, /unsafe=true or unsafe=false/],
    [`bully://${LIST}?self=n1&unsafe=true&color=red`, /"color" means nothing/],
    [`bully://${LIST}?self=n1&unsafe=true&insecure=true&dir=x`, /keeps nothing on disk/],
    [`bully://n1@h:1,n01@h:2?self=n1&unsafe=true&insecure=true`, /same id/],
    [`bully://${LIST}?self=n1&unsafe=true&quorum=true&dir=x&insecure=true`, /contradict/],
  ])("%s", async (url, message) => {
    await expect(openBackend(url)).rejects.toThrow(message);
  });

  it("an election without allowUnfenced, and a candidate that is no peer", async () => {
    const backend = bullyBackend({ peers: LIST.split(","), unsafe: true, insecure: true });
    after.push(async () => backend[Symbol.asyncDispose]());
    expect(() => new Election({ name: "e", backend })).toThrow(/allowUnfenced: true/);
    const election = new Election({ name: "e", backend, allowUnfenced: true });
    await expect(election.campaign()).rejects.toThrow(/only a peer of the list can lead/);
    await election.close();
  });

  it("n10 is higher than n9", () => {
    const names = ["n10@h:1", "n9@h:2", "a@h:3"];
    expect(ranked(names).map(({ name }) => name)).toEqual(["a", "n9", "n10"]);
  });

  it("shows the peers, not a password, as the place", async () => {
    expect(await bully.where!(new URL(`bully://n1@h:1?self=n1`))).toBe("n1@h:1");
  });
});

describe("quorum: true", () => {
  it("prefers the highest, and a minority does not lead", async () => {
    const cluster = await RaftCluster.prepare(3);
    after.push(() => cluster.stop());
    const elections = new Map<string, Election>();
    for (const self of cluster.names) {
      const backend = bullyBackend({
        peers: cluster.peers,
        self,
        quorum: true,
        dir: cluster.dir(self),
        key: KEY,
      });
      expect(backend.guarantees).toMatchObject({ exclusion: "linearizable", token: "term" });
      const election = new Election({ name: "e", id: self, backend, closeBackend: true, ttlMs: 600 });
      after.push(() => election.close());
      elections.set(self, election);
    }
    const [n1, n2, n3] = ["n1", "n2", "n3"].map((name) => elections.get(name)!);
    // Who comes first depends on who is up first; the next vacancy finds all three waiting.
    const leading = n1!.campaign();
    const upAndFollowing = [n2!, n3!].map((each) =>
      until(async () => (await each.leader().catch(() => null))?.candidate === n1!.candidate, 20_000),
    );
    const first = await leading;
    await Promise.all(upAndFollowing);
    const terms = [n2!.campaign(), n3!.campaign()];
    terms.forEach((term) => term.catch(() => {}));
    await first.resign();
    const next = await Promise.race(terms);
    expect(next.candidate).toMatch(/^n3/);
    // The two lower ones go: the highest alone is a minority, and does not lead.
    await n1!.close();
    await n2!.close();
    await until(() => !next.held, 10_000);
  }, 40_000);
});
