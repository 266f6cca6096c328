/** Versions that rise though the store forgot the last one. */
import { expect, it } from "vitest";
import { hybridVersion } from "../../src/kit/hybrid-version.js";

it("is the store's time while that is ahead, and one more than the last where it is not", () => {
  expect(hybridVersion(null, 1_700_000_000_000.9)).toBe(1_700_000_000_000n);
  expect(hybridVersion(5n, 1_700_000_000_000)).toBe(1_700_000_000_000n);
  expect(hybridVersion(1_700_000_000_000n, 1_700_000_000_000)).toBe(1_700_000_000_001n);
  expect(hybridVersion(1_700_000_000_005n, 1_700_000_000_000)).toBe(1_700_000_000_006n);
});

it("is exact beyond 2^53", () => {
  expect(hybridVersion(2n ** 60n, 1_700_000_000_000)).toBe(2n ** 60n + 1n);
});
