/** Every link of the documentation to a file or a heading of this repository leads somewhere. */
import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT, files } from "./sources.js";

const PAGES = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  ...["docs", "examples", "deploy"].flatMap((folder) => files(folder, ".md")),
];

const read = (page: string): string => readFileSync(join(ROOT, page), "utf8");

/** Without blocks of code: what looks like a link or a heading there is none. */
const prose = (page: string): string => read(page).replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");

/** A heading's anchor, as code hosts make it. */
function anchor(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .trim()
    .replaceAll(" ", "-");
}

function anchors(page: string): string[] {
  return [...prose(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchor(heading ?? ""));
}

function broken(page: string): string[] {
  const targets = [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target ?? "");
  return targets.filter((target) => {
    if (/^https?:/.test(target)) return false;
    const [path = "", heading] = target.split("#");
    const file = path === "" ? page : posix.normalize(posix.join(posix.dirname(page), path));
    if (!existsSync(join(ROOT, file))) return true;
    return heading !== undefined && file.endsWith(".md") && !anchors(file).includes(heading);
  });
}

describe("links in the documentation", () => {
  it.each(PAGES)("%s: all lead somewhere", (page) => {
    expect(broken(page)).toEqual([]);
  });

  it("are followed: into folders, files and headings", () => {
    expect(anchors("docs/guide/page.md")).toContain("the-double-dialer");
    expect(prose("README.md")).toContain("](docs/guide/page.md#the-double-dialer)");
  });
});
