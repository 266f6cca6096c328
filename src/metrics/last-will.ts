/** The helper that gives leadership back when this process dies, as metrics of the process. */
import { Gauge } from "prom-client";
import { lastWill } from "../will/index.js";

export function lastWillGauges(): Gauge[] {
  const up = new Gauge({
    name: "conclave_last_will_helper_up",
    help: "1 while a helper waits to give leadership back if this process dies, 0 if none does (or lastWill is off)",
    registers: [],
    collect() {
      this.set(lastWill.status.helper === undefined ? 0 : 1);
    },
  });
  const lost = new Gauge({
    name: "conclave_last_will_helpers_lost",
    help: "Helpers of the last will that died and were replaced, since this process was started",
    registers: [],
    collect() {
      this.set(lastWill.status.lost);
    },
  });
  return [up, lost];
}
