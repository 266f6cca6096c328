/**
 * Checks model/raft.pml with spin: the rules hold in every order of steps within
 * the bounds, and each rule that is taken away gives a counterexample.
 *
 *   node scripts/model.mjs               all of it
 *   node scripts/model.mjs restart       only checks whose name contains this
 *   node scripts/model.mjs --show rule   the same, with the steps of each counterexample
 */
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const MODEL = fileURLToPath(new URL("../model/raft.pml", import.meta.url));
const run = promisify(execFile);
const MOST_MB = 4_000;

/** `fails`: the assertion that must be violated. Without it none may be, and all states must have been visited. */
const CHECKS = [
  { name: "proof: any number of terms and restarts", defines: ["TERMS=1"] },
  { name: "proof: writes take time, voters work on meanwhile", defines: ["TERMS=1", "LEASE=1", "SLOW_DISK"] },
  { name: "proof: a disk is lost", defines: ["TERMS=1", "LEASE=1", "WIPES=1"] },
  {
    name: "proof: half of rule 1, promises bind votes only",
    defines: ["TERMS=1", "LEASE=1", "NO_PROMISE_FOR_BEATS"],
  },
  {
    name: "half of rule 1: promises bind only acknowledgements",
    defines: ["TERMS=1", "LEASE=1", "NO_PROMISE_FOR_VOTES"],
    fails: "oneHolder",
  },
  {
    name: "reached: a second term opens after the first",
    defines: ["TERMS=1", "REACH_SECOND_TERM"],
    fails: "notReached",
  },
  {
    name: "reached: a voter that lost its disk acknowledges again",
    defines: ["TERMS=1", "WIPES=1", "LEASE=1", "REACH_REJOINED"],
    fails: "notReached",
  },
  {
    name: "without rule 1: no promise",
    defines: ["TERMS=1", "NO_PROMISE_FOR_VOTES", "NO_PROMISE_FOR_BEATS"],
    fails: "oneHolder",
  },
  {
    name: "without rule 4: promises forgotten at a restart",
    defines: ["TERMS=1", "NO_RESTART_RULE"],
    fails: "oneHolder",
  },
  {
    name: "without rule 2: answers before the vote is on disk",
    defines: ["TERMS=1", "ANSWER_BEFORE_PERSIST"],
    fails: "oneVotePerVoterAndTerm",
  },
  {
    name: "without rule 2: and so two are elected in one term",
    defines: ["TERMS=1", "ANSWER_BEFORE_PERSIST", "IGNORE_VOTES"],
    fails: "oneElectedPerTerm",
  },
  {
    name: "without rule 6: the term opens with the votes",
    defines: ["TERMS=1", "OPEN_WHEN_ELECTED"],
    fails: "oneHolder",
  },
  {
    name: "without rule 7: the lease counts from the answer",
    defines: ["TERMS=1", "LEASE_FROM_ANSWER"],
    fails: "oneHolder",
  },
  {
    name: "a lost disk: rejoins after one answer of two",
    defines: ["TERMS=1", "LEASE=1", "WIPES=1", "REJOIN_BY_MAJORITY"],
    fails: "oneLeaderPerTerm",
  },
  {
    name: "a lost disk: votes in the term it was told",
    defines: ["TERMS=1", "LEASE=1", "WIPES=1", "REJOIN_VOTES_AGAIN"],
    fails: "oneLeaderPerTerm",
  },
  { name: "one vote of three is a majority", defines: ["TERMS=1", "MAJORITY=1"], fails: "oneElectedPerTerm" },
];

async function check({ defines, fails }, show) {
  const directory = await mkdtemp(join(tmpdir(), "conclave-model-"));
  const flags = defines.map((define) => `-D${define}`);
  try {
    await cp(MODEL, join(directory, "raft.pml"));
    await run("spin", ["-a", ...flags, "raft.pml"], { cwd: directory });
    // Every state is kept in full: no hashing away, no partial order reduction. Breadth first: the shortest counterexample.
    const options = ["-O1", "-w", "-DBFS", "-DSAFETY", "-DNOREDUCE", `-DMEMLIM=${MOST_MB}`];
    await run("gcc", [...options, "-o", "pan", "pan.c"], { cwd: directory });
    const { stdout } = await run("./pan", ["-w24"], { cwd: directory, maxBuffer: 1 << 26 });
    const result = read(stdout);
    const steps = show && result.failed ? await trail(directory, flags) : "";
    return { ...result, steps, problem: judge(result, fails) };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function read(stdout) {
  const number = (pattern) => Number(pattern.exec(stdout)?.[1] ?? Number.NaN);
  return {
    failed: /assertion violated \(?(\w+)/.exec(stdout)?.[1],
    errors: number(/errors: (\d+)/),
    states: number(/(\d+) states, stored/),
    depth: number(/depth reached (\d+)/),
    complete: !/Search not completed|out of memory|max search depth too small/.test(stdout),
  };
}

function judge({ failed, errors, states, complete }, fails) {
  if (!(states > 0)) return "spin printed no result";
  if (fails !== undefined) {
    if (failed === undefined) return "no counterexample was found";
    return failed === fails ? undefined : `${failed} is violated, not ${fails}`;
  }
  if (errors !== 0) return `${failed ?? "something"} is violated`;
  return complete ? undefined : "not all states were visited";
}

async function trail(directory, flags) {
  const { stdout } = await run("spin", ["-t", "-T", "-B", ...flags, "raft.pml"], {
    cwd: directory,
    maxBuffer: 1 << 24,
  });
  return stdout.replace(/^spin: trail ends[\s\S]*/m, "").replace(/^/gm, "          ");
}

async function main() {
  const args = process.argv.slice(2);
  const show = args.includes("--show");
  const [only = ""] = args.filter((arg) => !arg.startsWith("--"));
  const started = performance.now();
  const chosen = CHECKS.filter(({ name }) => name.includes(only));
  let red = 0;
  for (const each of chosen) {
    const from = performance.now();
    const { states, depth, failed, steps, problem } = await check(each, show);
    const seconds = ((performance.now() - from) / 1000).toFixed(1);
    const what =
      problem ??
      (failed === undefined ? "holds" : failed === "notReached" ? "reached" : `${failed} is violated`);
    if (problem !== undefined) red++;
    const figures = `${states} states, depth ${depth}, ${seconds} s`;
    process.stdout.write(
      `${problem === undefined ? "ok " : "RED"}  ${each.name.padEnd(58)} ${what} (${figures})\n${steps}`,
    );
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  process.stdout.write(`${chosen.length} checks of the model, ${red} not as expected, in ${seconds} s\n`);
  return red === 0 && chosen.length > 0 ? 0 : 1;
}

process.exitCode = await main().catch((error) => {
  const missing =
    error.code === "ENOENT"
      ? `"${error.path}" is not installed (Debian: apt-get install spin gcc)`
      : String(error);
  process.stderr.write(`model: ${missing}\n`);
  return 1;
});
