/** Every command and every snippet that the README, the guides, deploy/README and the help texts show, and what is to be done with it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inProcess } from "../cli/process.js";
import { ROOT, files, lineAt } from "../shape/sources.js";

export interface Example {
  readonly where: string;
  readonly kind: "command" | "snippet";
  /** As it stands there, without the remark behind it. */
  readonly text: string;
  /** What its block does before: variables, functions, files. */
  readonly before: string;
  /** The whole block, remarks included. */
  readonly block: string;
}

/** `runs`: on two machines. `asks`: names no candidate. `no`: nothing of ours campaigns, for this reason. */
export type Lot =
  | { readonly lot: "runs" }
  | { readonly lot: "asks" }
  | { readonly lot: "one machine" }
  | { readonly lot: "no"; readonly reason: string };

export const PAGES = ["README.md", ...files("docs/guide", ".md"), "deploy/README.md"];
const CONCLAVE = /(?:^|[\s;&|(])(?:npx )?conclave (?!\$)/;
const CANDIDATE = /\bconclave (?:run|exec|lock|cron(?! status)|serve(?!.*--observe-only))\b/;
const LOCAL = /\bfile:|--lock-dir|memory:|memoryBackend\(/;

/** Whether it says that files of this machine are meant. */
export function isLocal(text: string): boolean {
  return LOCAL.test(text);
}

/** Lines that start no candidate of ours, and why. What fits none of them, and is no command of ours, is a fault of the test. */
const APART: readonly (readonly [RegExp, string])[] = [
  [/^export /, "sets the store for the lines after it"],
  [/^(?:uri\(\)|LIST=|head -c)/, "prepares the lines after it"],
  [
    /\bconclave demo\b|^make demo\b/,
    "the demo: all its candidates are its own, on one machine, and it says so",
  ],
  [/\bconclave last-will\b/, "gives back what is written in a will; it campaigns nowhere"],
  [/^(?:ExecStopPost|NODE_OPTIONS)=/, "starts no candidate"],
  [/^make (?:test|package)\b|^npm (?:install|run|pkg)\b/, "builds, installs or tests"],
  [/^curl /, "asks a sidecar that runs already"],
  [
    /^(?:kubectl|docker|deploy\/minikube)\b/,
    "needs a cluster or an engine: what it starts is read from its files below",
  ],
];

const CAMPAIGNS =
  /\.(?:run|campaign|tryCampaign|acquire|tryAcquire|withLock)\(|\bschedule\(\{|setRunCoordinator\(/;
const OPENS =
  /\b(?:openElection|openLock|openBackend|schedule|Election|Lock|simulate|conformanceSuite|race)\(/;
const CODE_APART: readonly (readonly [RegExp, string])[] = [
  [/\bVirtualClock\b|\bsimulate\(|conformanceSuite\(/, "simulated or tested inside one process"],
  [/\brace\(|declare function myBackendAt/, "on a store of the reader's own"],
  [
    /kubernetes:/,
    "the store is the cluster it runs in; test/kubernetes runs the same path against an API server",
  ],
  [
    /createSidecar\(|readHistory\(|\.watch\(election\)/,
    "opens a shared store by name and does not campaign there",
  ],
  [
    /new Redlock\(|new Etcd3\(|^import cron from "node-cron";\n\ncron\.schedule/,
    "the other tool, before it is replaced",
  ],
];

export function lotOf(example: Example): Lot {
  return example.kind === "command" ? commandLot(example) : snippetLot(example);
}

function commandLot({ text, before, block }: Example): Lot {
  const apart = APART.find(([fits]) => fits.test(text));
  if (apart !== undefined) return { lot: "no", reason: apart[1] };
  if (!CONCLAVE.test(text)) throw new Error(`no rule for this line: ${text}`);
  if (!CANDIDATE.test(text)) return { lot: "asks" };
  if (!LOCAL.test(`${before}\n${text}`)) return { lot: "runs" };
  const said = block.split("\n").find((line) => line.includes(text)) ?? "";
  if (!/one machine/.test(said))
    throw new Error(`uses files, and its line does not say "one machine": ${text}`);
  return { lot: "one machine" };
}

function snippetLot({ text }: Example): Lot {
  const apart = CODE_APART.find(([fits]) => fits.test(text));
  if (apart !== undefined) return { lot: "no", reason: apart[1] };
  if (!OPENS.test(text))
    return { lot: "no", reason: "uses an election, a term or a store that is handed to it" };
  if (LOCAL.test(text)) throw new Error(`uses a store of one machine:\n${text}`);
  if (!CAMPAIGNS.test(text))
    return { lot: "no", reason: "opens a shared store by name and does not campaign" };
  return { lot: "runs" };
}

export async function examples(): Promise<Example[]> {
  const found = PAGES.flatMap(inPage);
  // One after the other: each borrows this process's stdout.
  for (const command of ["", ...(await commands())]) found.push(...(await inHelp(command)));
  return found;
}

/** All there are, as the help lists them. */
async function commands(): Promise<string[]> {
  const { out } = await inProcess(["--help"]);
  const list = /Commands:\n((?: {2}.*\n)+)/.exec(out)?.[1] ?? "";
  return [...list.matchAll(/^ {2}([a-z][a-z-]*)/gm)]
    .map(([, name]) => name!)
    .filter((name) => name !== "help");
}

function inPage(page: string): Example[] {
  const text = readFileSync(join(ROOT, page), "utf8");
  return [...text.matchAll(/^```(ts|js|sh)[^\n]*\n([\s\S]*?)^```$/gm)].flatMap((match) => {
    const where = `${page}:${lineAt(text, match.index)}`;
    const block = match[2]!;
    return match[1] === "sh"
      ? lines(where, block)
      : [{ where, kind: "snippet", text: block, before: "", block }];
  });
}

async function inHelp(command: string): Promise<Example[]> {
  const { out } = await inProcess([...(command === "" ? [] : [command]), "--help"]);
  const block = /Examples:\n((?: {2}.*\n)+)/.exec(`${out}\n`)?.[1] ?? "";
  const bare = block.replaceAll(/^ {2}(?:\$ )?/gm, "");
  return lines(`conclave ${command} --help`.replace("  ", " "), bare, / {3,}.*$| {2,}#.*$/);
}

/** Each line of a block is a command; those before it that are no commands of ours belong to it. */
function lines(where: string, block: string, remark: RegExp = /\s+# .*$| {2,}#.*$/): Example[] {
  const found: Example[] = [];
  const before: string[] = [];
  for (const line of block.split("\n")) {
    const text = line.replace(remark, "").trim();
    if (text === "" || text.startsWith("#")) continue;
    found.push({ where, kind: "command", text, before: before.join("\n"), block });
    if (/^(?:export |[A-Z]+=\S+$|uri\(\)|head )/.test(text)) before.push(text);
  }
  return found;
}
