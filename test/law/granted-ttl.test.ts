/** The store grants a lease for longer or shorter than it was asked for: what was granted counts, with its margin. */
import { expect, it } from "vitest";
import { MARGIN_MS, openScene, RENEW_MS, TTL_MS } from "../support/hand-backend.js";

it.each([
  ["longer", 12_000, MARGIN_MS * 1.2],
  ["shorter", 8_000, MARGIN_MS],
])("%s", async (_, ttlMs, marginMs) => {
  const heldMs = ttlMs - marginMs;
  const granted = openScene();
  granted.backend.granted = { ttlMs };
  expect((await granted.election.campaign()).remainingMs).toBe(heldMs);
  await granted.election.close();

  const confirmed = openScene();
  confirmed.backend.granted = { ttlMs };
  confirmed.backend.onCampaign = () => confirmed.clock.stall(TTL_MS + ttlMs);
  const term = await confirmed.election.campaign();
  expect(confirmed.backend.calls).toEqual(["campaign", "renew"]);
  expect(term.remainingMs, "confirmed").toBeCloseTo(heldMs, 3);
  await confirmed.clock.advance(RENEW_MS); // renewed at nine tenths of it
  expect(term.remainingMs, "renewed").toBeCloseTo(heldMs - RENEW_MS / 10, 3);
  await term.proclaim("v");
  expect(term.remainingMs, "proclaimed").toBeCloseTo(heldMs, 3);
  await confirmed.election.close();
});
