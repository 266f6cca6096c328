/** Who closes what: the stores first, then the client that they share, once. */
import { expect, test } from "vitest";
import type { RecordStore } from "../../src/seam/table.js";
import { recordBackend } from "../../src/record/backend.js";
import { textLeases } from "../../src/record/codec.js";
import { TableServer } from "../support/table.js";

function open(closed: string[], fails = false): ReturnType<typeof recordBackend> {
  const server = new TableServer();
  const store = (name: "leases" | "records"): RecordStore => ({
    ...server.texts(name),
    [Symbol.asyncDispose]: async () => {
      closed.push(name);
      if (fails) throw new Error("a store that does not close");
    },
  });
  return recordBackend({
    name: "table",
    guarantees: {
      exclusion: "linearizable",
      expiry: "observer",
      token: "record",
      succession: "unordered",
      ttl: { minMs: 100, stepMs: 1 },
    },
    leases: textLeases(store("leases")),
    records: store("records"),
    close: async () => void closed.push("client"),
  });
}

test("a shared client is closed once, after the stores", async () => {
  const closed: string[] = [];
  const backend = open(closed);
  await Promise.all([backend[Symbol.asyncDispose](), backend[Symbol.asyncDispose]()]);
  await backend[Symbol.asyncDispose]();
  expect(closed).toEqual(["leases", "records", "client"]);
});

test("and also if a store fails to close", async () => {
  const closed: string[] = [];
  await expect(open(closed, true)[Symbol.asyncDispose]()).rejects.toThrow("does not close");
  expect(closed).toEqual(["leases", "client"]);
});
