/** The last will, as programs see it. */
import type { Socket } from "node:net";
import { keeper, type LastWillStatus } from "./keeper.js";

export type { LastWillStatus } from "./keeper.js";

/** The last will of this process: see the option `lastWill` of `openElection` and `openBackend`. */
export interface LastWill {
  /**
   * An entry for the `stdio` of `child_process.spawn`, for every process that
   * acts for this one while it leads: leadership is then given back only when
   * that process is dead too. Give it an index above 2 and do not use it there.
   */
  readonly stdio: Socket | "ignore";
  /** Whether a helper lives, and how many were lost. */
  readonly status: LastWillStatus;
}

/** The last will of this process. */
export const lastWill: LastWill = {
  get stdio() {
    return keeper().handOut();
  },
  get status() {
    return keeper().status;
  },
};
