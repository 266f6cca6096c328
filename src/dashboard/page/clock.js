/** The server's time, as well as it can be known: what arrived with the least delay counts. */

/** Clocks drift apart slowly; beyond this one of them was set. */
const JUMP_MS = 1000;
const FORGET_MS_PER_MESSAGE = 0.05;

let offset = Number.NaN;

/**
 * A message says it was sent at this time.
 * @param {number} at
 */
export function heard(at) {
  const now = at - performance.now();
  if (Number.isNaN(offset) || Math.abs(now - offset) > JUMP_MS) offset = now;
  else offset = Math.max(now, offset - FORGET_MS_PER_MESSAGE);
}

/** Epoch milliseconds of the server. */
export function serverNow() {
  return performance.now() + offset;
}
