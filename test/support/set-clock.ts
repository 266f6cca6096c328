/** A virtual clock whose chance is what the test says: jitter is a share of it. */
import { VirtualClock } from "../../src/testing/virtual-clock.js";

export class SetClock extends VirtualClock {
  draw = 0;

  override random(): number {
    return this.draw;
  }
}
