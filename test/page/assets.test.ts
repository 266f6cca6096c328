/** The files of the page: nothing in them that its own security policy, or ours, would not allow. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { dashboard } from "../../src/dashboard/index.js";
import { files, withoutComments } from "../shape/sources.js";

const FOLDER = "src/dashboard/page";
const all = ["html", "css", "js", "svg"].flatMap((ending) => files(FOLDER, `.${ending}`));
const text = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

describe("the page's files", () => {
  it.each(all)("%s asks nothing of other machines", (path) => {
    const addresses = [...text(path).matchAll(/(?:https?:)?\/\/[a-z0-9][^\s"'`)]*/gi)].map(
      ([match]) => match,
    );
    const harmless = addresses.filter((address) => address !== "http://www.w3.org/2000/svg");
    expect(path.endsWith(".js") ? harmless.filter((a) => a.startsWith("http")) : harmless).toEqual([]);
    expect(text(path)).not.toMatch(/@import|url\(/);
  });

  it.each(all.filter((path) => path.endsWith(".js")))("%s puts text in as text", (path) => {
    const code = withoutComments(text(path));
    expect(code).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function/);
    expect(code).not.toMatch(/setAttribute\("style"|localStorage|document\.cookie|console\./);
  });

  it("the document has no script and no style of its own, and no control without a name", () => {
    const html = text(`${FOLDER}/index.html`);
    expect(html).not.toMatch(/<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)/i);
    expect(html).toMatch(/<html lang="en">/);
    expect(html).toMatch(/aria-live="polite"/);
  });

  it("are all served, and everything the document names is there", async () => {
    const assets = await dashboard();
    expect(assets.size).toBe(all.length);
    const html = assets.get("/ui")!.body.toString();
    const named = [...html.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map((match) => match[1]!);
    expect(named.length).toBeGreaterThan(3);
    for (const path of named) expect(assets.has(path), path).toBe(true);
    const scripts = [...assets].filter(([path]) => path.endsWith(".js"));
    for (const [, { body }] of scripts)
      for (const [, name] of body.toString().matchAll(/from "\.\/([^"]+)"/g))
        expect(assets.has(`/ui/${name}`), name).toBe(true);
  });
});
