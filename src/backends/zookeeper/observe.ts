/**
 * Following who leads: the first candidate of the list, read again after every
 * change. What a server shows may be old; a token that is lower than one that was
 * shown before is left out.
 */
import { onAbort, sharedController, sleep } from "../../kit/wait.js";
import type { Leader, ObserveOptions } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import type { CallLimits, ZooKeeperConnection } from "./client.js";
import { candidates, type Layout } from "./layouts.js";
import { leaderFromNode } from "./node-data.js";
import { assertRoot } from "./parents.js";
import type { Paths } from "./paths.js";
import { withPublished } from "./published-value.js";

export interface ObserverContext {
  readonly clock: Clock;
  readonly layout: Layout;
  readonly paths: Paths;
  readonly election: string;
  /** Node of the election. */
  readonly parent: string;
  /** What was shown before: lower tokens of the same history are old. */
  readonly floor: Floor;
  connected(limits: CallLimits): Promise<ZooKeeperConnection>;
}

/** The highest token that was shown, and in which history of the ensemble. */
export interface Floor {
  token: bigint;
  history: object | undefined;
}

export async function* observeLeader(
  observation: ObserverContext,
  { signal, pollMs, attemptMs }: ObserveOptions,
): AsyncGenerator<Leader | null> {
  const { clock, floor } = observation;
  const limits = { signal, limitMs: attemptMs };
  while (!signal.aborted) {
    const wake = sharedController();
    const unlink = onAbort(signal, () => wake.abort());
    try {
      const connection = await observation.connected(limits);
      const leader = await look(observation, connection, limits, () => wake.abort());
      if (floor.history !== connection.history)
        Object.assign(floor, { token: 0n, history: connection.history });
      if (leader === null || leader.token >= floor.token) {
        if (leader !== null) floor.token = leader.token;
        yield leader;
      }
      await sleep(clock, pollMs * (0.75 + 0.25 * clock.random()), wake.signal);
    } finally {
      unlink();
    }
  }
}

async function look(
  { layout, paths, parent, election }: ObserverContext,
  connection: ZooKeeperConnection,
  limits: CallLimits,
  wake: () => void,
): Promise<Leader | null> {
  for (;;) {
    const children = await connection.getChildren(parent, limits, wake);
    if (children === null) {
      await assertRoot(connection, paths.root, limits);
      // Nobody has ever been a candidate: the election's node may appear.
      if ((await connection.exists(parent, limits, wake)) === null) return null;
      continue;
    }
    const [first] = candidates(layout, parent, children);
    if (first === undefined) return null;
    const { name } = first;
    const value = { connection, path: paths.value(election), name };
    const [found, published] = await Promise.all([
      connection.getData(`${parent}/${name}`, limits, wake),
      layout.valuesApart ? withPublished(value, limits, wake) : {},
    ]);
    if (found !== null) return { ...leaderFromNode(name, found.data, found.stat.czxid), ...published };
  }
}
