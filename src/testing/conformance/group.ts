/** Tests are data: a group for each promise, a case for each way to break it. */
import type { Stage } from "./stage.js";

/** What a test cannot do without. */
export type Need = "cut" | "deafen" | "slow" | "child";

export interface Case {
  readonly name: string;
  readonly needs?: readonly Need[];
  run(stage: Stage): Promise<void>;
}

export interface Group {
  readonly name: string;
  readonly cases: readonly Case[];
}
