/** What a term has linked itself to, it unlinks when it ends, however it ends: a backend keeps what holds share. */
import { getEventListeners } from "node:events";
import { beforeEach, describe, expect, it } from "vitest";
import { MARGIN_MS, openScene, silence, TTL_MS } from "../support/hand-backend.js";
import type { Scene } from "../support/hand-backend.js";

let scene: Scene;
let revocation: AbortController;
const listeners = (): number => getEventListeners(revocation.signal, "abort").length;

beforeEach(() => {
  scene = openScene();
  revocation = new AbortController();
  scene.backend.granted = { revoked: revocation.signal };
});

describe("a term that has ended does not listen to its hold any more", () => {
  it("by resigning", async () => {
    const term = await scene.election.campaign();
    expect(listeners()).toBe(1);
    await term.resign();
    expect([listeners(), scene.clock.timers]).toEqual([0, 0]);
  });

  it("by running out", async () => {
    const term = await scene.election.campaign();
    scene.backend.onRenew = silence;
    await scene.clock.advance(TTL_MS - MARGIN_MS);
    expect(term.end?.reason).toBe("expired");
    expect([listeners(), scene.clock.timers]).toEqual([0, 0]);
  });

  it("by the store's word", async () => {
    const term = await scene.election.campaign();
    scene.backend.onRenew = () => "lost";
    await scene.clock.advance(TTL_MS / 2);
    expect(term.end?.reason).toBe("revoked");
    expect([listeners(), scene.clock.timers]).toEqual([0, 0]);
  });

  it("by closing its election", async () => {
    await scene.election.campaign();
    await scene.election.close();
    expect([listeners(), scene.clock.timers]).toEqual([0, 0]);
  });

  it("and one that was revoked before it began has never listened", async () => {
    revocation.abort();
    const term = await scene.election.campaign();
    expect((await term.ended).reason).toBe("revoked");
    expect([listeners(), scene.clock.timers]).toEqual([0, 0]);
    await scene.election.close();
  });
});
