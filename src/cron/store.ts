/** The ledger in the store: a fenced record, so that a leader of the past changes nothing in it. */
import type { Backend } from "../seam/backend.js";
import type { Clock } from "../seam/clock.js";
import { checkName } from "../kit/names.js";
import { recordsOf } from "../kit/records.js";
import { RecordFence } from "../fencing/record.js";
import type { Ledger } from "./ledger.js";
import { decodeLedger, encodeLedger } from "./ledger.js";

export class LedgerStore {
  readonly #fence: RecordFence;

  constructor(backend: Pick<Backend, "records">, name: string, clock: Clock, attemptMs: number) {
    const key = checkName(`cron.${checkName(name)}`);
    this.#fence = new RecordFence({
      records: recordsOf(backend.records, `the schedule "${name}"`),
      name,
      key,
      clock,
      attemptMs,
    });
  }

  /**
   * Applies a change under a token and returns what is stored now. Rejects with
   * a `StaleLeaderError` once a newer leader has been here; after any other
   * error the change may or may not have been made, and may be tried again.
   */
  async update(
    token: bigint,
    change: (ledger: Ledger | null) => Ledger,
    signal: AbortSignal,
  ): Promise<Ledger> {
    let result: Ledger | undefined;
    await this.#fence.write(
      token,
      (data) => {
        result = change(data === null ? null : decodeLedger(data));
        return encodeLedger(result);
      },
      { signal },
    );
    return result!;
  }

  async read(signal: AbortSignal): Promise<Ledger | null> {
    const data = (await this.#fence.read({ signal }))?.data ?? null;
    return data === null ? null : decodeLedger(data);
  }
}
