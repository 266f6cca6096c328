/** Which processes say that they are one voter: a restart, a twin, and a proof that comes late. */
import { beforeEach, describe, expect, it } from "vitest";
import { Lives } from "../../src/backends/raft/transport/lives.js";

let lives: Lives;
let cut: string[];

beforeEach(() => {
  lives = new Lives("us");
  cut = [];
  lives.onNewer((name, life) => cut.push(`${name} but ${life || "nobody"}`));
});

/** Asked now, and answered at once. */
function meet(life: string): string {
  return lives.meet("n1", life, lives.moment());
}

describe("a voter's lives", () => {
  it("a restart is met, and what is left of the process before it is sent away", () => {
    expect([meet("p0"), meet("p0"), meet("p1"), meet("p1")]).toEqual(["alone", "alone", "alone", "alone"]);
    expect(cut).toEqual(["n1 but p1"]);
  });

  it("an older one that answers what was asked after the newer one was met is a twin, and so is the newer one", () => {
    expect([meet("p0"), meet("p1"), meet("p0"), meet("p1")]).toEqual(["alone", "alone", "twin", "twin"]);
    expect(cut).toEqual(["n1 but p1", "n1 but nobody"]);
  });

  it("a proof that was asked for before the newest life was met says nothing, met or not met before", () => {
    const early = lives.moment();
    expect([meet("p0"), meet("p1")]).toEqual(["alone", "alone"]);
    expect([lives.meet("n1", "p0", early), lives.meet("n1", "never-met", early)]).toEqual(["late", "late"]);
    expect([meet("p1"), cut]).toEqual(["alone", ["n1 but p1"]]);
  });

  it("a third start after two twins is believed", () => {
    for (const life of ["p0", "p1", "p0"]) meet(life);
    expect([meet("p2"), meet("p2")]).toEqual(["alone", "alone"]);
    expect([meet("p1"), meet("p2")]).toEqual(["twin", "twin"]);
  });
});
