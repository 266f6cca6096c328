/** Elections with no server on the demo's page: real processes, a real browser, and a network that is cut in two. */
import { readdirSync } from "node:fs";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { Cli, scratch } from "../cli/process.js";
import { browserPath, picture, visit } from "./browser.js";
import { button, clean, controls, demo, end, focused, OVERFLOW } from "./demo.js";

/** Processes are started and leases run out, on a machine that has other things to do. */
const PATIENCE = { timeout: 40_000 };

const textOf = async (page: Page, id: string): Promise<string> =>
  (await page.locator(`#${id}`).textContent()) ?? "";

const verdict = (page: Page, algorithm: "raft" | "bully", words: RegExp): Promise<void> =>
  page.locator(`#${algorithm}-verdict`, { hasText: words }).waitFor(PATIENCE);

const note = (page: Page, words: RegExp): Promise<void> =>
  page.locator("#notes tr", { hasText: words }).first().waitFor(PATIENCE);

const card = (page: Page, name: string) =>
  page.locator(".peer", { has: page.getByRole("heading", { name }) });

/** Who leads by Raft, as the page says it. */
async function raftLeader(page: Page): Promise<string> {
  await verdict(page, "raft", /^n\d leads/);
  return /^n\d/.exec(await textOf(page, "raft-verdict"))![0];
}

/** Starts so many, waits until both elections have their leader. */
async function begin(page: Page, size: number): Promise<void> {
  await page.getByLabel("How many", { exact: true }).selectOption(String(size));
  await button(page, "Start the peers").click();
  await raftLeader(page);
  await verdict(page, "bully", new RegExp(`^n${size} leads`));
}

describe.skipIf(browserPath === undefined)("elections with no server in Chromium", () => {
  it("the network in two: by Raft the smaller part has no leader, by Bully there are two, in red", async () => {
    const temporary = scratch();
    const { cli, url } = await demo(1, "2s", temporary);
    await using seen = await visit(url, "light");
    const { page } = seen;
    await page.locator(".card[data-state='leader']").first().waitFor(PATIENCE);
    // By keyboard: the tabs are one stop, arrows go from one to the next.
    await page.keyboard.press("Tab");
    await page.keyboard.press("End");
    expect(await focused(page)).toBe("No server");
    expect(await page.locator("#election").isVisible()).toBe(false);
    for (const name of ["How many", "Start the peers"]) {
      await page.keyboard.press("Tab");
      expect(await focused(page)).toBe(name);
    }
    await page.keyboard.press("Enter");
    await raftLeader(page);
    await verdict(page, "bully", /^n5 leads/);
    await page.locator("#raft-mesh .way[data-bright]").first().waitFor(PATIENCE);
    await picture(page, "peers-whole");

    await button(page, "Cut the network in two").click();
    await verdict(page, "bully", /^Two leaders at once: n\d and n\d$/);
    await verdict(page, "raft", /^n\d leads, term …\d+\. No majority, so no leader: n\d, n5\.$/);
    const red = (algorithm: string) =>
      page.locator(`#contest-${algorithm}`).evaluate((e) => e.hasAttribute("data-bad"));
    expect([await red("bully"), await red("raft")]).toEqual([true, false]);
    const colour = await page.evaluate(`getComputedStyle(document.getElementById("bully-verdict")).color`);
    expect(colour).toBe("rgb(179, 38, 30)");
    expect([await textOf(page, "bully-leaders"), await textOf(page, "raft-leaders")]).toEqual(["2", "1"]);
    expect(await page.locator("#bully-mesh .mark-peer[data-two]").count()).toBe(2);
    expect(await page.locator("#links-rows button[aria-pressed='true']").count()).toBe(2 * 2 * 3);
    await note(page, /lead at once/);
    await picture(page, "peers-two-parts");
    await page.emulateMedia({ colorScheme: "dark" });
    await picture(page, "peers-two-parts-dark");
    await page.emulateMedia({ colorScheme: "light" });

    await button(page, "Heal all links").click();
    await verdict(page, "bully", /^n5 leads/);
    await verdict(page, "raft", /^n\d leads, term …\d+\.$/);
    expect(await textOf(page, "raft-two")).toBe("never");
    expect(await textOf(page, "bully-two")).toMatch(/\ds$|\d ms$|\d s$/);
    expect(await red("bully")).toBe(false);
    expect((await controls(page)).filter(({ name }) => name.trim() === "")).toEqual([]);
    clean(seen, url);
    await end(cli);
    expect(readdirSync(temporary)).toEqual([]);
  }, 180_000);

  it("kill, start, freeze, thaw, wipe a disk, cut one link in one direction; at phone width", async () => {
    const temporary = scratch();
    const { cli, url } = await demo(1, "1500ms", temporary);
    await using seen = await visit(`${url}&view=peers`, "dark");
    const { page } = seen;
    await begin(page, 3);
    const first = await raftLeader(page);
    await button(page, `Kill ${first}`).click();
    await card(page, first).and(page.locator("[data-state='gone']")).waitFor(PATIENCE);
    await verdict(page, "raft", new RegExp(`^(?!${first})n\\d leads`));
    await note(page, /votes for n\d in term …\d+: on its disk before it answers|acknowledges/);
    await button(page, `Start ${first}`).click();
    await card(page, first)
      .locator("dd", { hasText: "voted for" })
      .or(card(page, first).locator("dd", { hasText: "acknowledged" }))
      .waitFor(PATIENCE);
    const second = await raftLeader(page);
    await button(page, `Freeze ${second}`).click();
    await card(page, second).and(page.locator("[data-state='frozen']")).waitFor(PATIENCE);
    await verdict(page, "raft", new RegExp(`^(?!${second})n\\d leads`));
    await button(page, `Thaw ${second}`).click();
    await card(page, second)
      .locator("dd", { hasText: /^follows/ })
      .first()
      .waitFor(PATIENCE);

    const third = await raftLeader(page);
    const victim = ["n1", "n2", "n3"].find((name) => name !== third)!;
    const life = card(page, victim).locator(".card-state");
    const before = (await life.textContent()) ?? "";
    await button(page, `Wipe disk ${victim}`).click();
    await note(page, /is killed, and its disk is wiped/);
    // Another life, which has heard from all the others how far they are, or from the leader since.
    await life.filter({ hasText: /^up/, hasNotText: before }).waitFor(PATIENCE);
    await card(page, victim).locator("dd", { hasText: /^term/ }).waitFor(PATIENCE);
    expect(await textOf(page, "raft-two")).toBe("never");

    await button(page, "Cut the link from n1 to n2").click();
    const healing = button(page, "Heal the link from n1 to n2");
    await healing.and(page.locator("[aria-pressed='true']")).waitFor(PATIENCE);
    expect(await page.locator("#raft-mesh .way[data-cut]").count()).toBe(1);
    await healing.click();
    await button(page, "Cut the link from n1 to n2").waitFor(PATIENCE);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await page.evaluate(OVERFLOW)).toBe(0);
    await picture(page, "peers-phone");
    // Which tab is shown is in the address, and what has happened is told by the server.
    await page.reload();
    await raftLeader(page);
    clean(seen, url);
    await end(cli);
    expect(readdirSync(temporary)).toEqual([]);
  }, 180_000);

  it("with --peers the page shows that alone", async () => {
    const cli = new Cli(["demo", "--ui", "--peers", "raft", "--ttl", "1500ms"], { TMPDIR: scratch() });
    const url = (await cli.line(/^page: /)).replace("page: ", "");
    await using seen = await visit(url);
    const { page } = seen;
    await raftLeader(page);
    for (const id of ["tabs", "election", "dialer", "contest-bully"])
      expect(await page.locator(`#${id}`).isVisible(), id).toBe(false);
    await button(page, "Cut the network in two").click();
    await verdict(page, "raft", /No majority, so no leader: n\d\./);
    await cli.line(/Your turn/);
    clean(seen, url);
    await end(cli);
  }, 120_000);
});
