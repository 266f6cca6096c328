/**
 * A leader that is stopped exactly between `held` and its write. Arguments: URL
 * of the store, election, directory of a fenced file, URL of a fenced service,
 * rounds.
 */
import { EtcdFence, etcdClient } from "../../../src/backends/etcd/index.js";
import { FencedFile, fencedFetch, RecordFence } from "../../../src/fencing/index.js";
import { Election, isConclaveError, openBackend } from "../../../src/index.js";
import type { Term } from "../../../src/index.js";
import { say } from "../../support/say.js";

const [url, name, directory, service, rounds] = process.argv.slice(2);
const backend = await openBackend(url);
const election = new Election({ name: name!, backend, ttlMs: 2000, id: "stopped" });
// A process that was stopped has requests that were not answered in time; they are asked again.
election.on("error", () => {});
const file = new FencedFile({ path: directory! });
const record = new RecordFence({ records: backend.records, name: name! });

/** On etcd the leader's own key guards too. */
const client = url!.startsWith("etcd:")
  ? etcdClient({ endpoints: url!.slice("etcd://".length).split(","), env: {} })
  : undefined;
const guarded = client && new EtcdFence({ client, election: name! });

/** What the caller gets to see. Not knowing (a connection that died while we were stopped) is asked again. */
async function outcome(act: () => Promise<unknown>, tries = 5): Promise<string> {
  try {
    await act();
    return "written";
  } catch (error) {
    if (!isConclaveError(error)) return String(error);
    if (error.retriable && tries > 1) return outcome(act, tries - 1);
    return error.code === "stale-leader" ? `${error.name} ${error.code}` : error.message;
  }
}

async function write(term: Term): Promise<Record<string, string>> {
  const { token } = term;
  // A term that has not noticed yet: only the token can tell now.
  const unaware = { token, signal: term.signal, assertHeld: () => {} };
  const [appended, replaced, recorded, checked, sent] = await Promise.all([
    outcome(() => file.append(token, `${token}\n`)),
    outcome(() => new FencedFile({ path: `${directory!}-replaced` }).replace(token, `${token}`)),
    outcome(() => record.write(token, (data) => `${data ?? ""}${token}\n`)),
    outcome(() => record.check(token)),
    outcome(() => fencedFetch(unaware)(service!, { method: "POST", body: `${token}` })),
  ]);
  const committed =
    guarded &&
    (await outcome(() => guarded.commit(token, [{ kind: "put", key: `${name!}-data`, value: `${token}` }])));
  return {
    ...(committed && { etcd: committed }),
    append: appended,
    replace: replaced,
    record: recorded,
    check: checked,
    http: sent,
  };
}

for (let round = 1; round <= Number(rounds);) {
  const term = await election.campaign();
  // On a busy machine a term may be over before it began to act: such a round proves nothing.
  const before = await write(term);
  const { held } = term;
  if (held) {
    say({ event: "stopping", round, token: term.token, before });
    process.kill(process.pid, "SIGSTOP");
    // From here on the successor has written.
    const after = await write(term);
    say({ event: "resumed", round, token: term.token, heldAfter: term.held, after });
    round++;
  }
  await term.resign();
}
await election.close();
await backend[Symbol.asyncDispose]();
await client?.[Symbol.asyncDispose]();
process.disconnect();
