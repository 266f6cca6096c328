/** A real Chromium, with nothing of anybody's profile in it. */
import { accessSync, constants, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import type { BrowserContext, Page } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Where it is; `undefined`: nowhere, and the tests that need it are skipped and reported. */
export const browserPath = find();

function find(): string | undefined {
  for (const directory of (process.env["PATH"] ?? "").split(delimiter)) {
    for (const name of NAMES) {
      const path = join(directory, name);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch {
        // not here
      }
    }
  }
  return undefined;
}

export interface Visit extends AsyncDisposable {
  readonly page: Page;
  /** What the page complained of, and every address it asked. */
  readonly complaints: string[];
  readonly asked: string[];
}

export async function visit(url: string, colorScheme: "dark" | "light" = "light"): Promise<Visit> {
  const profile = mkdtempSync(join(tmpdir(), "conclave-chromium-"));
  const context: BrowserContext = await chromium.launchPersistentContext(profile, {
    executablePath: browserPath!,
    headless: true,
    args: ARGS,
    viewport: { width: 1280, height: 900 },
    colorScheme,
  });
  const page = context.pages()[0] ?? (await context.newPage());
  const complaints: string[] = [];
  const asked: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(url);
  return {
    page,
    complaints,
    asked,
    [Symbol.asyncDispose]: async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Kept after the tests, for people to look at. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = fileURLToPath(new URL("../../artifacts/page/", import.meta.url));
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}
