/** The page in a real browser, on a demo of real processes. */
import type { Locator, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { Cli, scratch } from "../cli/process.js";
import { browserPath, picture, visit } from "./browser.js";
import { button, clean, controls, demo, end, focused, OVERFLOW, PATIENCE } from "./demo.js";

const card = (page: Page, name: string): Locator =>
  page.locator(".card").filter({ has: page.getByRole("heading", { name, exact: true }) });

/** Whoever leads, once someone does, other than `than`. */
async function leader(page: Page, than = ""): Promise<string> {
  const crowned = page.locator(".card[data-state='leader']").filter({ hasNotText: than || /(?!)/ });
  await crowned.first().waitFor(PATIENCE);
  return (await crowned.first().locator(".card-name").textContent()) ?? "";
}

/** The play is broken off and everybody stands; who leads. */
async function ourTurn(page: Page): Promise<string> {
  await page.getByRole("heading", { name: "Your turn" }).waitFor(PATIENCE);
  const settled = async (): Promise<boolean> => {
    const states = await page
      .locator(".card")
      .evaluateAll((cards) => cards.map((card) => card.getAttribute("data-state")));
    return states.every((state) => state === "leader" || state === "follower") && states.includes("leader");
  };
  await expect.poll(settled, PATIENCE).toBe(true);
  return leader(page);
}

async function stateOf(page: Page, name: string, state: string): Promise<void> {
  await card(page, name)
    .and(page.locator(`[data-state='${state}']`))
    .waitFor(PATIENCE);
}

// Programs for the browser are text: this one compiles for Node, which has no document.

/** In how many places the time line stands within two seconds. */
const PLACES = `(async () => {
  const places = new Set();
  const until = performance.now() + 2000;
  while (performance.now() < until) {
    places.add(document.getElementById("world").style.transform);
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
  return places.size;
})()`;

/** Milliseconds from frame to frame. */
const FRAMES = `(async () => {
  const times = [];
  while (times.length < 2 || (times.length < 180 && times.at(-1) - times[0] < 6000))
    times.push(await new Promise((resolve) => requestAnimationFrame(resolve)));
  return times.slice(1).map((time, index) => time - times[index]);
})()`;

describe.skipIf(browserPath === undefined)("the page in Chromium", () => {
  it("without the token it says where to get one, and the terminal repeats the address", async () => {
    const { cli, url } = await demo(2);
    await using seen = await visit(url.replace(/#.*/, ""));
    await using own = await visit(url);
    await leader(own.page);
    await button(own.page, "Add a node").click(); // the play is broken off
    await own.page.getByRole("heading", { name: "Your turn" }).waitFor(PATIENCE);
    await seen.page.getByRole("heading", { name: /Only watching/ }).waitFor(PATIENCE);
    expect(await seen.page.locator("#scene-hints").textContent()).toMatch(/behind the # of the address/);
    expect(await seen.page.getByRole("heading", { name: "Your turn" }).count()).toBe(0);
    await cli.line((line) => line.includes("The page") && line.includes(url));
    clean(seen, url);
    await end(cli);
  });

  it("in five columns every word fits into its button", async () => {
    const { cli, url } = await demo(5);
    await using seen = await visit(url);
    const { page } = seen;
    await leader(page);
    for (const width of [1366, 1280, 1240]) {
      await page.setViewportSize({ width, height: 900 });
      // How much room there is beside the longest word, on both sides together.
      const spare = await page.evaluate(`(() => {
        const range = document.createRange();
        return [...document.querySelectorAll(".card-actions button")].map((button) => {
          range.selectNodeContents(button);
          return Math.round(button.clientWidth - range.getBoundingClientRect().width);
        });
      })()`);
      expect(Math.min(...(spare as number[])), `at ${width}`).toBeGreaterThanOrEqual(7);
    }
    await end(cli);
  });

  it("freeze the leader: its lease runs out, another leads, and its late write is refused", async () => {
    const { cli, url } = await demo(2);
    await using seen = await visit(url, "dark");
    const { page } = seen;
    await button(page, "Add a node").click();
    const first = await ourTurn(page);
    await button(page, `Freeze ${first}`).click();
    await stateOf(page, first, "frozen");
    await page.locator(".leadership[data-state='frozen']").waitFor(PATIENCE);
    const second = await leader(page, first);
    expect(second).not.toBe(first);
    await expect.poll(() => page.locator("#announce").textContent()).toContain(`${second} leads with token`);
    await button(page, `Thaw ${first}`).click();
    const refusal = page.locator(".refusal", { hasText: `Refused: ${first} came with token` });
    await refusal.waitFor(PATIENCE);
    const [old, seenBefore] = (await refusal.textContent())!.match(/\d+/g)!.slice(-2);
    expect(Number(old)).toBeLessThan(Number(seenBefore));
    await expect.poll(() => page.locator("#storage-refused").textContent()).toBe("1");
    await stateOf(page, first, "follower");
    // The handover was measured: nobody acted for about as long as a lease lasts.
    const row = page.locator("#handovers tr").filter({ hasText: "frozen" }).first();
    expect(await row.textContent()).toMatch(new RegExp(`^${first}${second}frozen\\d+\\d\\.\\d s$`));
    expect(await page.locator(".bar").count()).toBeGreaterThanOrEqual(2);

    // The rest of the buttons.
    await button(page, `Resign ${second}`).click();
    const third = await leader(page, second);
    await button(page, `Cut off ${third}`).click();
    await stateOf(page, third, "jeopardy");
    const fourth = await leader(page, third);
    await button(page, `Heal ${third}`).click();
    await stateOf(page, third, "follower");
    await button(page, `Kill ${fourth}`).click();
    await stateOf(page, fourth, "gone");
    await leader(page, fourth);
    await picture(page, "dark");
    await button(page, `Start ${fourth}`).click();
    await button(page, "Add a node").click();
    await stateOf(page, "node4", "follower");
    await button(page, "Remove node4").click();
    await card(page, "node4").waitFor({ ...PATIENCE, state: "detached" });
    await stateOf(page, fourth, "follower");
    clean(seen, url);
    await end(cli);
  }, 120_000);

  it("works by keyboard alone, every control has a name, and it fits a phone", async () => {
    const { cli, url } = await demo(2);
    await using seen = await visit(url, "light");
    const { page } = seen;
    // The first stops of the tab key; whoever presses a button directs from then on.
    await page.locator(".card[data-state='leader']").waitFor(PATIENCE);
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("The election");
    await page.keyboard.press("Tab");
    expect(await focused(page)).toBe("Add a node");
    await page.keyboard.press("Enter");
    await ourTurn(page);
    const wanted = ["Resign", "Freeze", "Cut off", "Kill", "Remove"].flatMap((action) =>
      ["node1", "node2", "node3"].map((node) => `${action} ${node}`),
    );
    const named = async (): Promise<string[]> =>
      (await controls(page)).filter(({ role }) => role === "button").map(({ name }) => name);
    const missing = async (): Promise<string[]> => {
      const present = await named();
      return wanted.filter((name) => !present.includes(name));
    };
    // The play may have told one to go just before it was broken off: it is started again.
    await expect.poll(missing, PATIENCE).toEqual([]);
    const first = await ourTurn(page);
    const all = await controls(page);
    expect(all.filter(({ name }) => name.trim() === "")).toEqual([]);
    const buttons = await named();
    expect(new Set(buttons).size).toBe(buttons.length);
    // Each of them is reached by the tab key, in the order of the page.
    const reached = [await focused(page)];
    while (reached.length < buttons.length) {
      await page.keyboard.press("Tab");
      reached.push(await focused(page));
    }
    expect(reached).toEqual(buttons);
    const act = async (name: string, key: "Enter" | "Space"): Promise<void> => {
      await button(page, name).focus();
      await page.keyboard.press(key);
    };
    await act(`Freeze ${first}`, "Enter");
    const second = await leader(page, first);
    // The button has become another and still has the focus.
    expect(await focused(page)).toBe(`Thaw ${first}`);
    await page.keyboard.press("Space");
    await page.locator(".refusal").waitFor(PATIENCE);
    await act(`Resign ${second}`, "Space");
    await leader(page, second);
    await picture(page, "light");

    // On a phone nothing sticks out, and for those who ask for it nothing moves between events.
    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ reducedMotion: "reduce", colorScheme: "dark" });
    expect(await page.evaluate(OVERFLOW)).toBe(0);
    expect(await page.evaluate(PLACES)).toBeLessThan(40);
    await picture(page, "phone");
    clean(seen, url);
    await end(cli);
  }, 90_000);

  it("stays smooth with twenty nodes", async () => {
    const { cli, url } = await demo(20, "4s");
    await using seen = await visit(url, "dark");
    const { page } = seen;
    await leader(page);
    await expect.poll(() => page.locator(".card[data-state='follower']").count(), PATIENCE).toBe(19);
    const gaps = (await page.evaluate(FRAMES)) as number[];
    gaps.sort((a, b) => a - b);
    const quantile = (share: number): number => gaps[Math.floor((gaps.length - 1) * share)]!;
    // Generous: twenty processes and a browser without a graphics card share this machine's cores.
    expect(quantile(0.5)).toBeLessThan(100);
    expect(quantile(0.95)).toBeLessThan(600);
    await picture(page, "twenty");
    await button(page, "Add a node").click({ force: true });
    expect(await page.locator(".card").count()).toBe(20);
    clean(seen, url);
    await end(cli);
    console.log(`frames: median ${quantile(0.5).toFixed(1)} ms, 95 % ${quantile(0.95).toFixed(1)} ms`);
  }, 90_000);

  it("shows the elections of a sidecar, and lets leadership be given up with the token", async () => {
    const token = "a-token-for-the-page-1234";
    const flags = ["--listen", "127.0.0.1:0", "--ui", "--ttl", "2s", "--lock-dir", scratch(), "--id", "web"];
    const cli = new Cli(["serve", "jobs", "mailer", ...flags], { CONCLAVE_SIDECAR_TOKEN: token });
    const url = (await cli.line(/^page: /)).replace("page: ", "");
    await using seen = await visit(`${url}#token=${token}`);
    const { page } = seen;
    await stateOf(page, "jobs", "leader");
    await stateOf(page, "mailer", "leader");
    const before = await card(page, "jobs").locator(".card-state").textContent();
    await button(page, "Resign jobs").click();
    await expect
      .poll(() => card(page, "jobs").locator(".card-state").textContent(), PATIENCE)
      .not.toBe(before);
    await page.locator("#handovers tr").first().waitFor(PATIENCE);
    expect((await controls(page)).filter(({ name }) => name.trim() === "")).toEqual([]);
    await picture(page, "sidecar");
    clean(seen, url);
    cli.kill("SIGTERM");
    await page.locator("#link[data-state='lost']").waitFor(PATIENCE);
    expect((await cli.exit).code).toBe(0);
  }, 60_000);
});
