/** Tests are data: a group for each promise, a case for each way to break it. */
import type { Faults } from "./faults.js";
import type { Stage } from "./stage.js";

/** What a test cannot do without. */
export type Need = Exclude<keyof Faults, "heal"> | "child";

export interface Case {
  readonly name: string;
  readonly needs?: readonly Need[];
  run(stage: Stage): Promise<void>;
}

export interface Group {
  readonly name: string;
  readonly cases: readonly Case[];
}
