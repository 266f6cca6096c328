/**
 * What the command finds in its environment. It is told that it may act, and
 * under which token. What the wrapper's store was opened with stays with the
 * wrapper: an environment is printed, logged and dumped all too easily.
 *
 * Not promised: secrecy from the command. It runs as the same user, and that
 * user may look at the wrapper.
 */
import { secretVariables } from "../backends/registry.js";
import { MARK_VARIABLE } from "./procfs.js";

/** Ours, among them the backend's URL, which may hold a password. */
const OWN = /^CONCLAVE_/;

export interface LeaderIdentity {
  readonly election: string;
  readonly candidate: string;
  readonly token: bigint;
}

/** The environment of the command. `keep`: what `--pass-env` names. `run`: see {@link processMarkOf}. */
export function commandEnvironment(
  env: NodeJS.ProcessEnv,
  keep: ReadonlySet<string>,
  leader: LeaderIdentity,
  run = 1,
): Record<string, string> {
  const left: Record<string, string> = {};
  const secrets = secretVariables();
  for (const [name, value] of Object.entries(env)) {
    const withheld = (OWN.test(name) || secrets.has(name)) && !keep.has(name);
    if (value !== undefined && !withheld) left[name] = value;
  }
  return {
    ...left,
    CONCLAVE_ELECTION: leader.election,
    CONCLAVE_ID: leader.candidate,
    CONCLAVE_TOKEN: leader.token.toString(),
    [MARK_VARIABLE]: `${env[MARK_VARIABLE] ?? ""} ${processMarkOf(leader, run)}`.trim(),
  };
}

/** Never used before: a candidate's id is of one process, a token of one term. Runs of one term that may go on at once have numbers. */
export function processMarkOf({ candidate, token }: LeaderIdentity, run = 1): string {
  return `${Buffer.from(candidate).toString("base64url")}.${token}.${run}`;
}

/**
 * The watchdog needs no more than it takes to start. Above all not the mark of
 * an `exec` around ours: whoever kills that one must leave our command to our watchdog.
 */
export function watchdogEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { PATH, HOME, LANG, LD_LIBRARY_PATH, DYLD_LIBRARY_PATH } = env;
  return { PATH, HOME, LANG, LD_LIBRARY_PATH, DYLD_LIBRARY_PATH };
}
