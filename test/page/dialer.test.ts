/** The double dialer on the demo's page: real processes, a real browser, and every customer called once. */
import { readdirSync, readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { describe, expect, it, vi } from "vitest";
import { scratch } from "../cli/process.js";
import { browserPath, picture, visit } from "./browser.js";
import { button, clean, controls, demo, end, focused, OVERFLOW, PATIENCE } from "./demo.js";

const CUSTOMERS = ["Ada", "Bela", "Carl", "Dora", "Egon", "Fanny"];
/** A week of accelerated days, on a machine that has other things to do. */
const WEEK = { timeout: 60_000 };

const textOf = async (page: Page, id: string): Promise<string> =>
  (await page.locator(`#${id}`).textContent()) ?? "";

/** What of the log cannot be read: cells that are hidden, that stick out of the log, or whose text is wider than they are. */
const CUT = `(() => {
  const box = document.querySelector(".log-box").getBoundingClientRect();
  const cells = [...document.querySelectorAll("#rings td")];
  if (cells.length === 0) return ["there is no log"];
  const range = document.createRange();
  return cells.filter((cell) => {
    range.selectNodeContents(cell);
    const text = range.getBoundingClientRect();
    const own = cell.getBoundingClientRect();
    return own.width === 0 || text.left < box.left || text.right > box.right || text.right > own.right + 1;
  }).map((cell) => cell.textContent);
})()`;

/** Of every customer the outcomes of the calls, a list for each day. */
const marks = (page: Page, table: "plain" | "fenced"): Promise<string[][][]> =>
  page
    .locator(`#${table}-rows tr`)
    .evaluateAll((rows) =>
      rows.map((row) =>
        [...row.querySelectorAll("td:has(.marks)")].map((cell) =>
          [...cell.querySelectorAll(".mark")].map((mark) => mark.getAttribute("data-outcome") ?? ""),
        ),
      ),
    );

const over = (page: Page): Promise<void> => page.locator("#outcome[data-phase='done']").waitFor(WEEK);

/** Instances of the dialer that are children of a process. */
function instancesOf(parent: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
        const ours = Number(stat.slice(stat.lastIndexOf(")") + 4).split(" ")[0]) === parent;
        return ours && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("dialer/instance");
      } catch {
        return false; // gone while we looked
      }
    });
}

const alive = (pids: readonly number[]): number[] =>
  pids.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("dialer/instance");
    } catch {
      return false;
    }
  });

describe.skipIf(browserPath === undefined)("the double dialer in Chromium", () => {
  it("a week by keyboard: without Conclave five calls each, with it one, whenever the leader falls", async () => {
    const temporary = scratch();
    const { cli, url } = await demo(1, "2s", temporary);
    await using seen = await visit(url, "dark");
    const { page } = seen;
    await page.locator(".card[data-state='leader']").waitFor(PATIENCE);
    await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowRight");
    expect(await focused(page)).toBe("The double dialer");
    expect(await page.locator("#election").isVisible()).toBe(false);
    for (const name of ["The leader is", "Start the calls"]) {
      await page.keyboard.press("Tab");
      expect(await focused(page)).toBe(name);
    }
    await page.keyboard.press("Enter");
    await page.locator(".member[data-state='leader']").waitFor(PATIENCE);
    // The button keeps the focus, and says why it does nothing now.
    expect(await focused(page)).toBe("Under way");
    await page.locator(".member[data-state='gone']").waitFor(WEEK);
    await page.locator(".member[data-state='frozen']").waitFor(WEEK);
    await picture(page, "dialer-live");
    await over(page);

    expect(await marks(page, "plain")).toEqual(CUSTOMERS.map(() => [Array(5).fill("connected")]));
    expect(await textOf(page, "plain-once")).toBe("0 of 6");
    expect(await textOf(page, "plain-more")).toBe("6");
    expect(await textOf(page, "plain-calls")).toBe("30");
    const fenced = await marks(page, "fenced");
    expect(fenced.map((days) => days.length)).toEqual(CUSTOMERS.map(() => 5));
    for (const calls of fenced.flat())
      expect(calls.filter((outcome) => outcome === "connected")).toEqual(["connected"]);
    expect(await textOf(page, "fenced-once")).toBe("30 of 30");
    expect(await textOf(page, "fenced-more")).toBe("0");
    expect(await textOf(page, "fenced-missed")).toBe("0");
    // Three calls before the kill, six, and two before the freeze; the frozen one dials on once.
    expect(await textOf(page, "fenced-repeats")).toBe("11");
    expect(await textOf(page, "fenced-stale")).toBe("1");
    expect(await textOf(page, "outcome")).toBe(
      "Without Conclave every customer was called 5 times. With it 30 of 30 calls were made once, " +
        "0 twice, 0 missed; 11 repeats and 1 with an old token were refused.",
    );
    const story = await page.locator("#story li").allTextContents();
    expect(story.map((line) => line.slice(0, 3))).toEqual(["Mon", "Tue", "Wed", "Thu", "Fri"]);
    expect(story.every((line) => /node\d began the list/.test(line))).toBe(true);
    expect(await page.locator("#rings tr").count()).toBe(30 + 30 + 11 + 1);
    expect(await page.locator("#rings tr[data-outcome='stale']").count()).toBe(1);
    expect((await controls(page)).filter(({ name }) => name.trim() === "")).toEqual([]);
    await picture(page, "dialer-dark");
    await page.emulateMedia({ colorScheme: "light" });
    await picture(page, "dialer-light");
    for (const width of [390, 360]) {
      await page.setViewportSize({ width, height: 740 });
      expect(await page.evaluate(OVERFLOW), `at ${width}`).toBe(0);
      // The log scrolls down, not sideways: no column of it is out of sight, and no word of it is cut.
      expect(await page.evaluate(CUT), `at ${width}`).toEqual([]);
    }
    await picture(page, "dialer-phone");
    // Its processes and files are gone although the demo goes on.
    expect(instancesOf(cli.child.pid!)).toEqual([]);
    expect(readdirSync(temporary).filter((name) => name.includes("dialer"))).toEqual([]);
    clean(seen, url);
    await end(cli);
    expect(readdirSync(temporary)).toEqual([]);
  }, 120_000);

  it("one chosen moment, again, and after the page was loaded anew", async () => {
    const { cli, url } = await demo(1);
    await using seen = await visit(url, "light");
    const { page } = seen;
    await page.getByRole("tab", { name: "The double dialer" }).click();
    await page.getByLabel("The leader is").selectOption("after-claim");
    await button(page, "Start the calls").click();
    await page.locator("#story li", { hasText: "killed before its first call" }).waitFor(WEEK);
    // Which half is shown is in the address, and what has happened is told by the server.
    await page.reload();
    await over(page);
    expect(await page.locator("#dialer").isVisible()).toBe(true);
    expect(await textOf(page, "fenced-once")).toBe("6 of 6");
    expect(await textOf(page, "fenced-repeats")).toBe("0");
    await page.getByLabel("The leader is").selectOption("before-claim");
    await button(page, "Start again").click();
    await page.locator("#outcome[data-phase='starting'], #outcome[data-phase='running']").waitFor(PATIENCE);
    await over(page);
    expect(await marks(page, "plain")).toEqual(CUSTOMERS.map(() => [Array(5).fill("connected")]));
    expect(await marks(page, "fenced")).toEqual(CUSTOMERS.map(() => [["connected"]]));
    clean(seen, url);
    await end(cli);
  }, 120_000);

  it.each(["SIGTERM", "SIGKILL"] as const)(
    "leaves no process behind when the demo gets %s in the middle",
    async (signal) => {
      const temporary = scratch();
      const { cli, url } = await demo(1, "2s", temporary);
      await using seen = await visit(url);
      const { page } = seen;
      await page.getByRole("tab", { name: "The double dialer" }).click();
      await button(page, "Start the calls").click();
      await page.locator(".member[data-state='leader']").waitFor(PATIENCE);
      const pids = instancesOf(cli.child.pid!);
      expect(pids.length).toBe(5);
      cli.kill(signal);
      await cli.exit;
      await vi.waitFor(() => expect(alive(pids)).toEqual([]), 10_000);
      if (signal === "SIGTERM") expect(readdirSync(temporary)).toEqual([]);
    },
    60_000,
  );
});
