/** Every option and event of an election, by name. The compiler sees to it that none is missing. */
import type { EventName } from "../api/events.js";
import type { ElectionOptions } from "../api/options.js";

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
