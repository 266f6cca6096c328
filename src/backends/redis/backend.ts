/** The Redis backend: the record engine over hashes, with messages for a quick handover. */
import type { BackendWithRecords, Guarantees } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { recordBackend } from "../../record/backend.js";
import { ServerChecks } from "./checks.js";
import { Connection } from "./connection.js";
import type { Driver } from "./driver.js";
import { Keys } from "./keys.js";
import { RedisLeases, RedisRecords } from "./leases.js";
import { RedisLocks } from "./locks.js";
import type { RedisLayout } from "./options.js";
import { Subscriber } from "./subscriber.js";
import { Texts } from "./texts.js";

/** What elections on Redis promise. */
export const GUARANTEES: Guarantees = {
  exclusion: "best-effort",
  expiry: "store",
  token: "record",
  succession: "unordered",
  ttl: { minMs: 500, stepMs: 1 },
};

export interface RedisParts {
  readonly driver: Driver;
  readonly clock: Clock;
  readonly layout: RedisLayout;
  readonly prefix: string | undefined;
  readonly quarantine: boolean;
}

/**
 * Locks of others take no tokens, and a lock that is gone is forgotten: a resource cannot rely on a number, and
 * there is no place for an heir.
 */
const UNFENCED: Guarantees = { ...GUARANTEES, token: "unfenced", honours: ["stand-back"] };

export function redisBackendOn(parts: RedisParts): BackendWithRecords {
  const { driver, clock, layout, prefix } = parts;
  const connection = new Connection(driver, clock);
  const subscriber = new Subscriber(driver, clock);
  const texts = new Texts(connection, subscriber, clock);
  const checks = new ServerChecks(connection, clock);
  const shared = layout === "redlock";
  const keys = new Keys(shared ? undefined : prefix);
  return recordBackend({
    name: "redis",
    guarantees: shared ? UNFENCED : GUARANTEES,
    leases: shared
      ? new RedisLocks(connection, subscriber, prefix ?? "", clock)
      : new RedisLeases({ texts, keys, connection, checks, quarantine: parts.quarantine }),
    records: new RedisRecords({ connection, texts, keys }),
    clock,
    uniqueVersions: !shared, // they follow the server's clock
    onWarning: (listener) => checks.warnings.listen(listener),
    close: async () => {
      checks.close();
      subscriber.close();
      connection.close();
    },
  });
}
