import { expect, test } from "vitest";
import { Election, isConclaveError, memoryBackend } from "../../src/index.js";

const open = (name: unknown, rest: object = {}) =>
  new Election({ name: name as string, backend: memoryBackend(), ...rest });

test.each([[""], ["a".repeat(201)], ["a\0b"], ["a\nb"], ["\u2028"], ["\ud800"], [7], [undefined], [{}]])(
  "the name %j is refused with a reason",
  (name) => {
    try {
      open(name);
      expect.unreachable();
    } catch (error) {
      expect(isConclaveError(error) && error.code).toBe("invalid");
    }
  },
);

test.each([
  ["__proto__"],
  ["../x"],
  ["/election/scheduler"],
  ["constructor"],
  ["a".repeat(200)],
  ["Ä"],
  ["👑"],
  ["%2e"],
])("the name %j is an election like any other", async (name) => {
  const backend = memoryBackend();
  await using one = new Election({ name, backend, ttlMs: 2000 });
  await using two = new Election({ name, backend, ttlMs: 2000 });
  await one.campaign();
  expect(await two.tryCampaign()).toBeNull();
});

test("look-alike names are two elections", async () => {
  const backend = memoryBackend();
  await using composed = new Election({ name: "\u00e4", backend });
  await using decomposed = new Election({ name: "a\u0308", backend });
  await composed.campaign();
  expect(await decomposed.tryCampaign()).not.toBeNull();
});

test("ids always get a random part; evil ids and values are refused", () => {
  expect(open("e", { id: "x" }).candidate).toMatch(/^x-[0-9a-f]{16}$/);
  expect(open("e", { id: "x" }).candidate).not.toBe(open("e", { id: "x" }).candidate);
  expect(() => open("e", { id: "" })).toThrow(/id must not be empty/);
  expect(() => open("e", { id: "x".repeat(101) })).toThrow(/at most 100/);
  expect(() => open("e", { value: "x".repeat(20_000) })).toThrow(/at most 16384/);
  expect(() => open("e", { value: "\udfff" })).toThrow(/surrogate/);
});
