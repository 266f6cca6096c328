/**
 * The picture of the page in the README, taken from the real page on a real
 * demo: `npm run picture` writes docs/page.png. Needs Chromium.
 */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { browserPath, visit } from "../test/page/browser.js";

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const NODES = 4;
const SIZE = { width: 1280, height: 1060 };

if (browserPath === undefined) throw new Error("no Chromium found; scripts/servers/install chromium");
const demo = spawn(process.execPath, [at("dist/cli/main.js"), "demo", "--nodes", String(NODES), "--ui"], {
  stdio: ["ignore", "pipe", "inherit"],
});
try {
  await using seen = await visit(await address(), "dark");
  await seen.page.setViewportSize(SIZE);
  await play(seen.page);
  const { y = 0, height = 0 } = (await seen.page.locator("#timeline").boundingBox()) ?? {};
  const clip = { x: 0, y: 0, width: SIZE.width, height: Math.min(SIZE.height, y + height + 18) };
  await seen.page.screenshot({ path: at("docs/page.png"), clip });
} finally {
  demo.kill("SIGTERM");
}

async function address(): Promise<string> {
  for await (const line of createInterface({ input: demo.stdout })) {
    if (!line.startsWith("page: ")) continue;
    demo.stdout.resume(); // the rest is for nobody
    return line.slice("page: ".length);
  }
  throw new Error("the demo ended without an address");
}

/** A little of everything. */
async function play(page: Page): Promise<void> {
  const press = (name: string): Promise<void> => page.getByRole("button", { name, exact: true }).click();
  const leader = async (than = "nobody"): Promise<string> => {
    const crowned = page.locator(".card[data-state='leader']").filter({ hasNotText: than });
    await crowned.waitFor();
    return (await crowned.locator(".card-name").textContent()) ?? "";
  };
  await press("Add a node");
  await page.getByRole("heading", { name: "Your turn" }).waitFor();
  await pause(6_000);
  const first = await leader();
  await press(`Resign ${first}`);
  await pause(8_000);
  const second = await leader();
  await press(`Kill ${second}`);
  await pause(9_000);
  await press(`Start ${second}`);
  const third = await leader(second);
  await press(`Freeze ${third}`);
  const fourth = await leader(third);
  await pause(3_000);
  await press(`Thaw ${third}`);
  await page.locator(".refusal").waitFor();
  await pause(9_000);
  const others = (await page.locator(".card-name").allTextContents()).filter((name) => name !== fourth);
  await press(`Cut off ${others[0]}`);
  await press(`Freeze ${others[1]}`);
  await press(`Kill ${others[2]}`);
  await page.mouse.move(0, 0);
  await pause(4_000);
}
