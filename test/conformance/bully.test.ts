/**
 * Bully with `quorum: true`, which is what promises one leader: three voters stay up
 * in this process, every backend of the suite stands without a vote. Bully without a
 * quorum cannot pass: it promises neither one leader nor rising tokens, and
 * test/bully/elections.test.ts asserts that a partition gives it two leaders.
 */
import { afterAll, beforeAll, describe, test } from "vitest";
import { bullyBackend } from "../../src/backends/bully/index.js";
import type { Backend } from "../../src/seam/backend.js";
import { conformanceSuite } from "../../src/testing/conformance/index.js";
import { startCandidate } from "../support/children.js";
import { ProxiedVoters, skips } from "../support/proxied-voters.js";
import { KEY } from "../support/raft-cluster.js";
import { without } from "../support/wishes.js";

describe("bully with a quorum, backends without a vote", () => {
  const voters = new ProxiedVoters();

  beforeAll(async () => {
    await voters.start();
    process.env["CONCLAVE_BULLY_KEY"] = KEY;
  });
  afterAll(async () => {
    delete process.env["CONCLAVE_BULLY_KEY"];
    await voters.stop();
  });

  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: async (): Promise<Backend> =>
      bullyBackend({ peers: voters.cluster.peers, quorum: true, key: KEY, dial: voters.dial() }),
    faults: voters.faults,
    skips: [
      ...skips,
      ...without(["stand-back"], "at a vacancy the highest peer goes first, whatever its priority"),
    ],
    child: ({ election, ttlMs }) =>
      startCandidate({ url: `bully://${voters.cluster.list}?quorum=true`, election, ttlMs }),
  });
});
