/**
 * The double dialer. Five instances of one program shall call a list of
 * customers at 9:00: each customer once. The leader dies, or freezes, at the
 * worst moments; the exchange's log shows what became of it.
 *
 * `conclave demo` shows the very same on its page, so the parts are in its
 * folder, src/demo/dialer. Read first:
 *   instance.ts: the program: `schedule` from conclave/cron, `tokenFetch` from conclave/fencing
 *   exchange.ts: the sink: `fenceHandler` and `Gate` from conclave/fencing, and a memory of customer + instant
 *   dialer.ts:   the story: who is struck when
 */
import { Dialer } from "../../src/demo/dialer/dialer.js";
import { MOMENTS, POSSIBLE } from "../../src/demo/dialer/model.js";

await using dialer = new Dialer();
await dialer.play(POSSIBLE);

const { days, log, customers } = dialer.state;
for (const [day, { at, moment, sums }] of days.entries()) {
  if (moment === null) {
    const times = (customer: string): number =>
      log.filter((ring) => ring.list === at && ring.customer === customer).length;
    console.log(
      `without Conclave: ${customers.map((customer) => `${customer} ${times(customer)}x`).join(", ")}`,
    );
    continue;
  }
  console.log(`day ${day}, 9:00, leader ${MOMENTS[moment]}:`);
  console.log(
    `  called once ${sums.once}, twice ${sums.more}, missed ${sums.missed}; ` +
      `refused: ${sums.repeats} repeats, ${sums.stale} of a leader of the past`,
  );
}
