import { describe, expect, it } from "vitest";
import { listing, MOST_LISTED } from "../../src/kit/listing.js";

describe("a listing", () => {
  it("is sorted, names each election once, and leaves out what cannot be a name", () => {
    expect(listing(["b", "a", "b", "", "x\u0000y", "\ud800", "n".repeat(201)], true)).toEqual({
      names: ["a", "b"],
      complete: true,
    });
  });

  it("is cut where it is too long, and says so", () => {
    const many = Array.from({ length: MOST_LISTED + 1 }, (_, index) => `n${index}`);
    const { names, complete } = listing(many, true);
    expect(names).toHaveLength(MOST_LISTED);
    expect(complete).toBe(false);
    expect(listing(many.slice(1), true).complete).toBe(true);
    expect(listing(["a"], false)).toEqual({ names: ["a"], complete: false });
  });
});
