/** Tests are data: a group for each promise, a case for each way to break it. */
import type { Wish } from "../../seam/backend.js";
import type { Faults } from "./faults.js";
import type { Stage } from "./stage.js";

/** What a test cannot do without. */
export type Need = Exclude<keyof Faults, "heal"> | "child";

export interface Case {
  readonly name: string;
  /** What the backend has to honour; one that declares that it does not is excused by a skip. */
  readonly wishes?: readonly Wish[];
  readonly needs?: readonly Need[];
  run(stage: Stage): Promise<void>;
}

export interface Group {
  readonly name: string;
  readonly cases: readonly Case[];
}
