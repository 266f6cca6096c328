/** A program that is done with its election ends by itself. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { tempDirectory } from "./support.js";

const built = (path: string): string =>
  JSON.stringify(new URL(`../../.build/src/${path}`, import.meta.url).href);

const IMPORTS = `
  const { fileBackend } = await import(${built("backends/file/index.js")});
  const { Election } = await import(${built("election/election.js")});`;

const programs: [string, (directory: string) => string][] = [
  ["only imports the library", () => IMPORTS],
  [
    "opens an election and closes it",
    (directory) => `${IMPORTS}
      const backend = fileBackend({ directory: ${JSON.stringify(directory)} });
      const election = new Election({ name: "a", backend, closeBackend: true });
      await election.close();`,
  ],
  [
    "leads, watches, waits and closes",
    (directory) => `${IMPORTS}
      const open = () => new Election({ name: "a", backend: fileBackend({ directory: ${JSON.stringify(directory)} }), closeBackend: true });
      const [one, two] = [open(), open()];
      two.on("leader", () => {});
      await one.campaign();
      const waiting = two.campaign().catch(() => {});
      const running = open();
      const ran = running.run(() => {});
      await new Promise((resolve) => setTimeout(resolve, 50));
      await Promise.all([two.close(), one.close(), running.close()]);
      await Promise.all([waiting, ran]);`,
  ],
];

describe("a program that", () => {
  it.each(programs)("%s exits by itself", async (_, program) => {
    const script = `${program(await tempDirectory())}; console.log("done");`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { timeout: 20_000 });
    const [output, errors, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "exit"),
    ]);
    expect(errors).toBe("");
    expect(output).toBe("done\n");
    expect(code).toBe(0);
  });
});
