/** The page of a whole store, `serve --ui --observe-only`, in a real browser: who leads and who waits, and nothing to press. */
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { Cli, scratch } from "../cli/process.js";
import { browserPath, picture, visit } from "./browser.js";
import { clean, controls, OVERFLOW, PATIENCE } from "./demo.js";

describe.skipIf(browserPath === undefined)("the page that only observes, in Chromium", () => {
  it("shows every election, who leads and who waits, without a button", { timeout: 90_000 }, async () => {
    const url = pathToFileURL(scratch()).href;
    const stand = (name: string, id: string, ...args: string[]): Cli =>
      new Cli(["run", name, "--backend", url, "--ttl", "2s", "--id", id, ...args]);
    const leader = stand("mailer", "web-1", "--roster");
    await leader.line(/ELECTED/);
    const others = [
      stand("mailer", "web-2", "--priority", "-1"),
      stand("mailer", "screen", "--ineligible"),
      stand("nightly-bill", "web-3"),
    ];
    await others[2]!.line(/ELECTED/);
    const server = new Cli(["serve", "--ui", "--observe-only", "--listen", "0", "--backend", url]);
    const address = (await server.line(/^.*page: http/)).replace(/^.*page: /, "");
    await using seen = await visit(address);
    const { page } = seen;
    const card = page
      .locator(".card")
      .filter({ has: page.getByRole("heading", { name: "mailer", exact: true }) });
    await card.and(page.locator("[data-state='follower']")).waitFor(PATIENCE);
    expect(await card.locator(".card-state").textContent()).toMatch(/^web-1 leads, token …\d{5}$/);
    await expect
      .poll(() => card.locator(".card-standing").textContent(), PATIENCE)
      .toBe("waiting: web-2 (priority -1); observing: screen");
    const plain = page.locator(".card").filter({ hasText: "web-3 leads" });
    await plain.waitFor(PATIENCE);
    // Nobody is on a roster there: nothing is said, and nothing takes its room.
    expect(await plain.locator(".card-standing").isVisible()).toBe(false);
    await picture(page, "observe-only");

    expect((await controls(page)).filter(({ role }) => role === "button" || role === "link")).toEqual([]);
    expect(await page.locator(".card button").count()).toBe(0);
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await page.evaluate(OVERFLOW)).toBe(0);

    // The leader goes: the page shows the next one, by the stream and without being loaded again.
    leader.kill("SIGTERM");
    await page.locator(".card").filter({ hasText: "web-2 leads" }).waitFor(PATIENCE);
    await expect.poll(() => card.locator(".card-standing").textContent(), PATIENCE).toBe("observing: screen");
    clean(seen, address);
    for (const cli of [...others, server]) {
      cli.kill("SIGTERM");
      expect((await cli.exit).code).toBe(0);
    }
  });
});
