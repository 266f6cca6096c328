/** Starts candidates as processes of their own, from what was compiled before the tests. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { ROOT } from "../shape/sources.js";
import type { CandidateOptions } from "./candidate.js";

const PROGRAM = join(ROOT, ".build/test/support/candidate.js");

/** Standard input is a pipe: when this process dies, they notice. */
export function startCandidate(options: CandidateOptions): ChildProcess {
  return spawn(process.execPath, [PROGRAM, JSON.stringify(options)], { stdio: ["pipe", "pipe", "inherit"] });
}
