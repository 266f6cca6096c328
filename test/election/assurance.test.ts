/** What a backend does not promise has consequences: refusal, a warning, a label. */
import { expect, test } from "vitest";
import type { Backend, Guarantees } from "../../src/index.js";
import { Election, memoryBackend, Lock } from "../../src/index.js";
import { nodeCronCoordinator, schedule } from "../../src/cron/index.js";
import { RecordFence } from "../../src/fencing/index.js";

function promising(changed: Partial<Guarantees>): Backend {
  const memory = memoryBackend();
  return {
    name: "weak",
    guarantees: { ...memory.guarantees, ...changed },
    campaign: (candidacy, options) => memory.campaign(candidacy, options),
    observe: (election, options) => memory.observe(election, options),
    [Symbol.asyncDispose]: () => memory[Symbol.asyncDispose](),
  };
}

test("a backend without fencing tokens is refused unless that is accepted", async () => {
  const backend = promising({ token: "unfenced" });
  expect(() => new Election({ name: "a", backend })).toThrow(/allowUnfenced: true/);
  expect(() => new Lock({ name: "a", backend })).toThrow(/no fencing tokens/);
  await using election = new Election({ name: "a", backend, allowUnfenced: true });
  const elected = new Promise<Guarantees>((resolve) => {
    election.on("elected", ({ guarantees }) => resolve(guarantees));
  });
  await election.campaign();
  expect((await elected).token).toBe("unfenced");
});

test("a best-effort backend is warned of once, not for every election on it", async () => {
  const backend = promising({ exclusion: "best-effort" });
  const warnings: string[] = [];
  const logger = { debug() {}, info() {}, error() {}, warn: (line: string) => void warnings.push(line) };
  for (const name of ["a", "b"]) {
    await using election = new Election({ name, backend, logger });
    await election.campaign();
  }
  expect(warnings).toEqual([expect.stringMatching(/best effort only/)]);
});

test("a backend that keeps no records refuses schedules and record fences in one sentence", async () => {
  const backend = promising({});
  expect(() => new RecordFence({ records: backend.records, name: "ledger" })).toThrow(/keeps none/);
  expect(() => nodeCronCoordinator(backend)).toThrow(/keeps none/);
  await expect(schedule({ name: "nightly", cron: "0 3 * * *", job: () => {}, backend })).rejects.toThrow(
    /keeps none/,
  );
});
