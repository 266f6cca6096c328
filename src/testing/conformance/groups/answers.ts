/**
 * Yes, no and don't-know, asked of the stores themselves. `null` from a write
 * says "certainly not written"; a store that says it of a timeout or a broken
 * connection makes an election believe that nobody wrote its record.
 */
import type { Backend, CallOptions } from "../../../seam/backend.js";
import type { Entry } from "../../../seam/table.js";
import { leasesOf } from "../../../record/backend.js";
import { check, present, show } from "../check.js";
import type { Group } from "../group.js";
import type { Stage } from "../stage.js";

const PATIENCE_MS = 500;
/** Long enough for a request to arrive; if it does not, the answer may all the same not be `null`. */
const ARRIVE_MS = 300;

/** A record store, whatever its records are. */
export interface Records {
  readonly what: string;
  read(key: string, options: CallOptions): Promise<Entry<unknown> | null>;
  write(
    key: string,
    expected: bigint | null,
    text: string,
    options: CallOptions,
  ): Promise<Entry<unknown> | null>;
  readonly watch?: (key: string, wake: () => void, options: CallOptions) => Promise<void>;
}

/** The stores of a backend that can be asked: its records, and its leases if the record engine keeps them. */
export function storesOf(backend: Backend): Records[] {
  const { records } = backend;
  const leases = leasesOf(backend);
  const found: Records[] = [];
  if (records !== undefined)
    found.push({
      what: "the store of records",
      read: (key, options) => records.read(key, options),
      write: (key, expected, text, options) => records.write(key, expected, text, options),
      ...(records.watch && { watch: (key, wake, options) => records.watch!(key, wake, options) }),
    });
  if (leases === undefined) return found;
  const leaseOf = (value: string): Parameters<typeof leases.write>[2] => ({
    holder: "answers-51c7",
    ttlMs: 60_000,
    value,
    since: 1,
    token: null,
  });
  return [
    ...found,
    {
      what: "the store of leases",
      read: (key, options) => leases.read(key, options),
      write: (key, expected, text, options) => leases.write(key, expected, leaseOf(text), options),
      ...(leases.watch && { watch: (key, wake, options) => leases.watch!(key, wake, options) }),
    },
  ];
}

type Answer = { readonly thrown: unknown } | { readonly value: Entry<unknown> | null };

function answerOf(promise: Promise<Entry<unknown> | null>): Promise<Answer> {
  return promise.then(
    (value) => ({ value }),
    (thrown: unknown) => ({ thrown }),
  );
}

async function written(stage: Stage, store: Records, key: string): Promise<Entry<unknown>> {
  const writing = store.write(key, null, "one", stage.call());
  return present(await stage.soon(writing, "writing must be answered"), `${store.what}: creating a record`);
}

/** No answer came, so nothing is known: a throw, whatever was asked. */
async function unansweredIsThrown(stage: Stage, fault: "cut" | "deafen" | "blackHole"): Promise<void> {
  const stores = storesOf(await stage.open());
  const keys = stores.map(() => stage.name());
  const entries = await Promise.all(stores.map((store, index) => written(stage, store, keys[index]!)));
  await stage.faults[fault]();
  const asked = stores.map(async (store, index) => {
    const key = keys[index]!;
    const { version } = entries[index]!;
    const calls = {
      "an update": answerOf(store.write(key, version, "two", { signal: stage.abortAfter(PATIENCE_MS) })),
      "a creation": answerOf(
        store.write(stage.name(), null, "one", { signal: stage.abortAfter(PATIENCE_MS) }),
      ),
      "a read": answerOf(store.read(key, { signal: stage.abortAfter(PATIENCE_MS) })),
    };
    for (const [what, call] of Object.entries(calls)) {
      const answer = await stage.soon(call, `${store.what}: ${what} must give up`);
      // Where only the answers of writes are lost, a read may be answered, with the truth.
      const truth =
        fault === "deafen" && call === calls["a read"] && "value" in answer && answer.value !== null;
      check(
        "thrown" in answer || truth,
        `${store.what}: ${what} was answered with ${show("value" in answer && answer.value)} although no answer came from the store; not knowing is a throw`,
      );
    }
  });
  await Promise.all(asked);
}

/** The write takes effect, then the connection breaks. A client that sends it a second time finds its own record in its way. */
async function brokenIsThrown(stage: Stage): Promise<void> {
  const backend = await stage.open();
  for (const store of storesOf(backend)) {
    const key = stage.name();
    const { version } = await written(stage, store, key);
    await stage.faults.deafen();
    const writing = answerOf(store.write(key, version, "two", stage.call()));
    await stage.pause(ARRIVE_MS);
    await stage.faults.heal();
    const answer = await stage.soon(
      writing,
      `${store.what}: a write whose connection breaks must end`,
      3 * stage.soonMs,
    );
    check(
      "thrown" in answer || answer.value !== null,
      `${store.what}: a write whose connection broke was answered with null, which says that it was not written; nobody else wrote, so not knowing is all that can be said: throw`,
    );
  }
}

export const answers: Group = {
  name: "not knowing is a throw",
  cases: [
    {
      name: "when the store cannot be reached",
      needs: ["cut"],
      run: (stage) => unansweredIsThrown(stage, "cut"),
    },
    {
      name: "when the answer is lost",
      needs: ["deafen"],
      run: (stage) => unansweredIsThrown(stage, "deafen"),
    },
    {
      name: "when the connection is silent for good",
      needs: ["blackHole"],
      run: (stage) => unansweredIsThrown(stage, "blackHole"),
    },
    { name: "when the connection breaks after the request", needs: ["deafen"], run: brokenIsThrown },
  ],
};
