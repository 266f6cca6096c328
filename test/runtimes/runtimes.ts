/** Other versions of Node, Bun and Deno, as the package registry has them: fetched once into artifacts/, for long tests only. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { ROOT } from "../shape/sources.js";

export interface Runtime {
  readonly name: string;
  readonly version: string;
  readonly program: string;
  /** Words before the file that is run. */
  readonly run: readonly string[];
}

const STORE = join(ROOT, "artifacts/runtimes");
const arch = process.arch === "arm64" ? "arm64" : "x64";
const aarch = process.arch === "arm64" ? "aarch64" : "x64-baseline";

const KNOWN: readonly { name: string; spec: string; path: string; run: readonly string[] }[] = [
  ...["20", "22", "24", "26"].map((major) => ({
    name: `node-${major}`,
    spec: `node-linux-${arch}@${major}`,
    path: `node-linux-${arch}/bin/node`,
    run: [],
  })),
  { name: "bun", spec: `@oven/bun-linux-${aarch}@1`, path: `@oven/bun-linux-${aarch}/bin/bun`, run: ["run"] },
  {
    name: "deno",
    spec: `@deno/linux-${arch}-glibc@2`,
    path: `@deno/linux-${arch}-glibc/deno`,
    run: ["run", "--allow-all", "--quiet"],
  },
];

/** Why no runtime is tried; `undefined`: they are. */
export function unable(): string | undefined {
  if (process.env["CONCLAVE_LONG"] !== "1") return "they are fetched by a long run only (CONCLAVE_LONG=1)";
  return process.platform === "linux" ? undefined : "only those for Linux are known";
}

/** Those that can be had; the others are named on stderr. */
export function runtimes(): Runtime[] {
  const found = KNOWN.flatMap(({ name, spec, path, run }) => {
    const program = fetched(name, spec, path);
    if (program === undefined) return [];
    const { status, stdout } = spawnSync(program, ["--version"], { encoding: "utf8" });
    return status === 0 ? [{ name, version: stdout.split("\n")[0]!.trim(), program, run }] : [];
  });
  const absent = KNOWN.filter(({ name }) => !found.some((one) => one.name === name));
  console.warn(`\nruntimes tried: ${found.map(({ name, version }) => `${name} (${version})`).join(", ")}`);
  if (absent.length > 0) console.warn(`NOT to be had: ${absent.map(({ spec }) => spec).join(", ")}`);
  return found;
}

function fetched(name: string, spec: string, path: string): string | undefined {
  const folder = join(STORE, name);
  const program = join(folder, "node_modules", path);
  if (!existsSync(program)) {
    const half = `${folder}.${process.pid}`;
    mkdirSync(half, { recursive: true });
    try {
      npm(half, "init", "--yes");
      npm(half, "install", spec);
      rmSync(folder, { recursive: true, force: true });
      renameSync(half, folder);
    } catch {
      rmSync(half, { recursive: true, force: true });
      return undefined;
    }
  }
  return existsSync(program) ? program : undefined;
}

/** Without scripts, and without what the person who runs the tests has set for npm's own output. */
function npm(folder: string, ...words: readonly string[]): string {
  return execFileSync("npm", [...words, "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** An empty folder into which the package, as it would be published, has been installed with these others. */
export function installed(folder: string, more: readonly string[]): void {
  execFileSync(process.execPath, [join(ROOT, "scripts/package.mjs"), "--stage"], { stdio: "pipe" });
  const stage = join(ROOT, "artifacts/package");
  const words = ["pack", "--json", "--ignore-scripts", "--silent", "--pack-destination", folder];
  const packed = JSON.parse(execFileSync("npm", words, { cwd: stage, encoding: "utf8" })) as {
    filename: string;
  }[];
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
  npm(folder, "install", join(folder, packed[0]!.filename), ...more);
}

/** The environment in which `node`, and a script that begins with it, mean this runtime. */
export function environment(folder: string, { name, program }: Runtime): NodeJS.ProcessEnv {
  const bin = join(folder, `bin-${name}`);
  mkdirSync(bin, { recursive: true });
  const node = join(bin, "node");
  if (!existsSync(node)) symlinkSync(program, node);
  const { CONCLAVE_BACKEND: _b, NODE_OPTIONS: _o, ...rest } = process.env;
  return {
    ...rest,
    PATH: [bin, dirname(process.execPath), rest["PATH"] ?? ""].join(delimiter),
    NO_COLOR: "1",
  };
}
