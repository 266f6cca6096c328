/**
 * Everything that only needs an API server that works, on one of them: starting
 * it is the slow part. CONCLAVE_LONG=1 makes the runs beside client-go long.
 */
import { describe } from "vitest";
import { electionCases } from "./cases/election.js";
import { formatCases } from "./cases/formats.js";
import { interopCases } from "./cases/interop.js";
import { manifestCases } from "./cases/manifests.js";
import { routeCases } from "./cases/route.js";
import { stormCases } from "./cases/storm.js";
import { withServer } from "./support/with-server.js";

withServer("on an API server", (server) => {
  describe("elections", () => {
    electionCases(server);
  });
  describe("two formats of our record", () => {
    formatCases(server);
  });
  describe("edits that are none of an election's business", () => {
    stormCases(server);
  });
  describe("routing to the leader", () => {
    routeCases(server);
  });
  describe("deploy/", () => {
    manifestCases(server);
  });
  describe("client-go and Conclave in one election", () => {
    interopCases(server);
  });
});
