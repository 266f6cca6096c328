/** Every option and event of an election, by name. The compiler sees to it that none is missing. */
import type { EventName } from "../api/events.js";
import type { ElectionOptions } from "../api/options.js";
import { checkFlag, checkLogger, checkOptions } from "../kit/known-options.js";

export const ELECTION_OPTIONS: Readonly<Record<keyof ElectionOptions, true>> = {
  name: true,
  backend: true,
  id: true,
  value: true,
  ready: true,
  allowUnfenced: true,
  logger: true,
  clock: true,
  closeBackend: true,
  controls: true,
  history: true,
  priority: true,
  eligible: true,
  minTermMs: true,
  roster: true,
  ttlMs: true,
  renewMs: true,
  renewDeadlineMs: true,
  retryMs: true,
  attemptMs: true,
  drainMs: true,
  maxTermMs: true,
};

const FLAGS = ["allowUnfenced", "closeBackend", "controls", "history", "eligible", "roster"] as const;

/** What no compiler has looked at: names of options, and types that would otherwise do something else in silence. */
export function checkElectionOptions(
  what: string,
  options: Partial<Record<keyof ElectionOptions, unknown>>,
  known: Readonly<Record<string, true>> = ELECTION_OPTIONS,
): void {
  checkOptions(what, options, known);
  for (const name of FLAGS) checkFlag(name, options[name]);
  checkLogger(options.logger);
}

export const EVENTS: Readonly<Record<EventName, true>> = {
  elected: true,
  ended: true,
  jeopardy: true,
  safe: true,
  renewal: true,
  leader: true,
  transferred: true,
  error: true,
};
