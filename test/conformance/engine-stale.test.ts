/**
 * Reads may lag behind writes, as the guide says: a store whose reads are a quarter of a second old passes the suite. The
 * groups that read most in every run, all of them with CONCLAVE_LONG=1.
 */
import { conformanceTests } from "../../src/testing/conformance/index.js";
import { engineSuite } from "../support/engine.js";

const READING = ["observers see who leads", "records by compare-and-swap", "tokens strictly rise"];

const groups = new Set(conformanceTests().map((title) => title.slice(0, title.indexOf(":"))));
const skips = [...groups]
  .filter((group) => process.env["CONCLAVE_LONG"] !== "1" && !READING.includes(group))
  .filter((group) => group !== "real processes")
  .map((test) => ({ test, reason: "in the long runs" }));

engineSuite("observer", { lagMs: 250 }, skips);
