/**
 * Three voters stay up in this process; every backend of the suite is one more
 * process that stands and observes without a vote, behind a proxy for each voter.
 */
import { afterAll, beforeAll, describe, test } from "vitest";
import type { Backend } from "../../src/seam/backend.js";
import { conformanceSuite } from "../../src/testing/conformance/index.js";
import { startCandidate } from "../support/children.js";
import { ProxiedVoters, skips } from "../support/proxied-voters.js";
import { KEY } from "../support/raft-cluster.js";

describe("raft, backends without a vote", () => {
  const voters = new ProxiedVoters();

  beforeAll(async () => {
    await voters.start();
    process.env["CONCLAVE_RAFT_KEY"] = KEY;
  });
  afterAll(async () => {
    delete process.env["CONCLAVE_RAFT_KEY"];
    await voters.stop();
  });

  conformanceSuite({
    runner: { describe, test, skip: test.skip },
    backend: async (): Promise<Backend> => voters.cluster.backend(undefined, { dial: voters.dial() }),
    faults: voters.faults,
    skips,
    child: ({ election, ttlMs }) => startCandidate({ url: `raft://${voters.cluster.list}`, election, ttlMs }),
  });
});
