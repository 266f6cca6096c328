/**
 * Versions for stores that let the client choose the number. Published in
 * `conclave/backend`.
 */

/**
 * The number of the next version of a record: the one after `previous`, or the
 * store's time in epoch milliseconds if that is higher. The time makes versions,
 * and with them fencing tokens, go on rising where the store has forgotten
 * everything (a dropped table, a flush, a lost replica), as long as its clock
 * does not go back by more than the outage lasted.
 *
 * Take the time from the store, inside the write itself: clocks of clients
 * differ, and the comparison must be made with the version that is replaced.
 */
export function hybridVersion(previous: bigint | null, storeMs: number): bigint {
  const now = BigInt(Math.floor(storeMs));
  return previous === null || previous < now ? now : previous + 1n;
}
