/** A demo of real processes whose page is visited, and what every visit must leave behind: nothing. */
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { Cli, scratch } from "../cli/process.js";
import type { Visit } from "./browser.js";

export const PATIENCE = { timeout: 20_000 };

export async function demo(
  nodes: number,
  ttl = "2s",
  temporary = scratch(),
): Promise<{ cli: Cli; url: string }> {
  const cli = new Cli(["demo", "--ui", "--ttl", ttl, "--nodes", String(nodes)], { TMPDIR: temporary });
  const line = await cli.line(/^page: /);
  return { cli, url: line.replace("page: ", "") };
}

export async function end(cli: Cli): Promise<void> {
  cli.kill("SIGTERM");
  expect((await cli.exit).code).toBe(0);
}

export const button = (page: Page, name: string): Locator => page.getByRole("button", { name, exact: true });

/** Nothing to complain of, nothing asked elsewhere. */
export function clean({ complaints, asked }: Visit, url: string): void {
  expect(complaints).toEqual([]);
  const { origin } = new URL(url);
  expect(asked.filter((address) => new URL(address).origin !== origin)).toEqual([]);
}

// Programs for the browser are text: this one compiles for Node, which has no document.

/** How far the page sticks out of the window, to the right. */
export const OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth";

/** The name of what has the focus. */
export const focused = async (page: Page): Promise<string> =>
  String(
    await page.evaluate(
      `((e) => e?.getAttribute("aria-label") ?? e?.labels?.[0]?.textContent ?? e?.textContent)(document.activeElement)`,
    ),
  );

interface AxNode {
  readonly ignored: boolean;
  readonly role?: { readonly value: string };
  readonly name?: { readonly value: string };
}

/** Controls as assistive technology is told of them. */
export async function controls(page: Page): Promise<{ role: string; name: string }[]> {
  const session = await page.context().newCDPSession(page);
  const { nodes } = (await session.send("Accessibility.getFullAXTree")) as { nodes: AxNode[] };
  return nodes
    .filter(({ ignored }) => !ignored)
    .map(({ role, name }) => ({ role: role?.value ?? "", name: name?.value ?? "" }))
    .filter(({ role }) =>
      /^(button|link|tab|textbox|checkbox|combobox|slider|meter|table|group|region)$/.test(role),
    );
}
