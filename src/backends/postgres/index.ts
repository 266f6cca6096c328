/** Elections on PostgreSQL: one table, one statement for each step, the server's clock. */
import type { Backend, BackendWithRecords, Guarantees } from "../../seam/backend.js";
import { invalid } from "../../kit/errors.js";
import { recordBackend } from "../../record/backend.js";
import { LeaseStore } from "./leases.js";
import { Listener } from "./listener.js";
import { type PostgresOptions, resolve } from "./options.js";
import { Rows } from "./rows.js";
import { ShedlockBackend } from "./shedlock.js";
import { TextStore } from "./texts.js";
import { Timeline } from "./timeline.js";
import { layoutOf } from "./url.js";

export type { PostgresClient, Unlisten } from "./client.js";
export { PostgresFence } from "./fence.js";
export type { PostgresFenceOptions, PostgresTransaction } from "./fence.js";
export type { PostgresOptions } from "./options.js";

/** What elections on PostgreSQL promise. */
export const GUARANTEES: Guarantees = {
  exclusion: "single-primary",
  expiry: "store",
  token: "record",
  succession: "unordered",
  ttl: { minMs: 500, stepMs: 1 },
};

/** Elections on PostgreSQL. Nothing is sent before the first campaign: a server that is not there yet is not an error here. */
export function postgresBackend(options: PostgresOptions): BackendWithRecords {
  const { clock, layout, session, subscribe, table, quarantine, secrets, warn } = resolve(options, "record");
  if (layout !== "record") throw invalid("layout=shedlock is opened by openPostgres or shedlockBackend");
  const rows = new Rows({ clock, session, table, secrets, warn });
  const listener =
    subscribe &&
    new Listener({
      clock,
      channel: rows.channel,
      open: subscribe,
      notify: (payload, signal) => rows.notify(payload, signal),
      warn,
    });
  return recordBackend({
    name: "postgres",
    guarantees: GUARANTEES,
    leases: new LeaseStore(clock, rows, listener, new Timeline(rows, quarantine, warn)),
    records: new TextStore(rows, listener),
    clock,
    uniqueVersions: true, // they follow the server's clock
    close: async () => {
      listener?.close();
      await session[Symbol.asyncDispose]();
    },
  });
}

/**
 * Elections in ShedLock's table, beside its Java users. It keeps no records and
 * no values, and candidates poll.
 */
export function shedlockBackend(options: PostgresOptions): Backend {
  return new ShedlockBackend(resolve(options, "shedlock"));
}

/** Opens `postgres://user@host:5432,host2:5432/database?schema=…&table=…&layout=…` or `postgresql://…`. */
export function openPostgres(url: string | URL, options: PostgresOptions = {}): Backend {
  const all = { ...options, url: typeof url === "string" ? url : url.href };
  return layoutOf(all.url) === "shedlock" ? shedlockBackend(all) : postgresBackend(all);
}
