/** `list`, where the backend offers it: every election that is led is named, and records are not taken for elections. */
import { check } from "../check.js";
import type { Group } from "../group.js";

export const listing: Group = {
  name: "listing elections",
  cases: [
    {
      name: "an election that is led is listed, by another process too, and a record is not",
      async run(stage) {
        const [a, b] = await stage.openMany(2);
        if (b!.list === undefined) return;
        const [first, second, record] = [stage.name(), stage.name(), stage.name()];
        await stage.win(a!, first);
        await stage.win(a!, second);
        const { records } = a!;
        if (records !== undefined)
          await stage.soon(records.write(record, null, "a record", stage.call()), "writing a record");
        const { names, complete } = await stage.soon(b!.list(stage.call()), "listing must be answered");
        for (const name of [first, second])
          check(!complete || names.includes(name), `"${name}" is led and must be listed`);
        check(!names.includes(record), `"${record}" is a record, no election, and must not be listed`);
        check(new Set(names).size === names.length, "no election may be listed twice");
      },
    },
    {
      name: "listing ends soon after its signal aborts",
      async run(stage) {
        const backend = await stage.open();
        if (backend.list === undefined) return;
        const stop = new AbortController();
        const listed = backend.list({ signal: stop.signal }).catch(() => {});
        stop.abort();
        await stage.soon(listed, "an aborted listing must end");
      },
    },
  ],
};
