/**
 * Who leads next, on every store that this machine has: a transfer to a named
 * candidate beside a plain resign, an heir that is dead, preferred candidates at
 * a vacancy, and a preferred candidate that restarts again and again.
 * BENCH_STORES=etcd,redis takes these stores only, BENCH_PART=restarts one part.
 */
import { storeServers } from "../../test/support/store-servers.js";
import type { StoreServer } from "../../test/support/store-servers.js";
import type { Row } from "../measure.js";
import { chosen } from "../measure.js";
import { deadHeir } from "./dead-heir.js";
import { restarts } from "./restarts.js";
import { transfers } from "./transfers.js";
import { vacancies } from "./vacancies.js";

export const minutes = 14;

/** Measures on a store of its own. */
type Part = (url: string) => Promise<Row>;

const PARTS: readonly Part[] = [transfers, deadHeir, vacancies, restarts];

export default async function* bench(): AsyncGenerator<Row> {
  const wanted = process.env["BENCH_STORES"]?.split(",");
  const stores = storeServers.filter(({ name }) => wanted?.includes(name) !== false);
  if (stores.length === 0) throw new Error("BENCH_STORES names no store that is installed here");
  for (const store of stores) yield* onStore(store, chosen(PARTS));
}

async function* onStore({ name, start }: StoreServer, parts: readonly Part[]): AsyncGenerator<Row> {
  const { url, stop } = await start();
  try {
    for (const part of parts) {
      const { what, ...row } = await part(url);
      yield { what: `${name}: ${what}`, ...row };
    }
  } finally {
    await stop();
  }
}
