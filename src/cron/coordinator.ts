/**
 * For tasks of node-cron that are already there: `runCoordinator:
 * nodeCronCoordinator(backend)` with `distributed: true` lets one replica run
 * each slot, at most once. No leader is needed for that: every replica asks, the
 * first to write the slot into the record runs it. Give each task a name.
 */
import type { Backend } from "../seam/backend.js";
import type { RecordStore } from "../seam/table.js";
import { systemClock } from "../kit/clock.js";
import { ConclaveError, invalid } from "../kit/errors.js";
import { checkName } from "../kit/names.js";
import { recordsOf } from "../kit/records.js";
import { bounded } from "../kit/wait.js";

/** As node-cron 4.6 declares it. */
export interface RunCoordinator {
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
}

/** Slots remembered for each task; older ones are refused. */
const REMEMBERED = 100;
const ATTEMPT_MS = 5_000;
const MOST_RACES = 100;
const KEY = /^(.*):(\d{4,6}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z)$/s;

/** Lets one replica run each slot of a node-cron task, at most once. */
export function nodeCronCoordinator(backend: Backend): RunCoordinator {
  const records = recordsOf(backend.records, "node-cron's coordinator");
  return {
    async shouldRun(key) {
      const [, task, slot] = KEY.exec(key) ?? [];
      // A slot that is no date would be written down as null, and nobody could read the record any more.
      if (!task || !slot || Number.isNaN(Date.parse(slot)))
        throw invalid("the key is not a task's name and a slot; name the task in node-cron's options");
      return claimSlot(records, checkName(`cron.node.${task}`), Date.parse(slot));
    },
  };
}

async function claimSlot(records: RecordStore, key: string, slot: number): Promise<boolean> {
  const call = <T>(doing: string, ask: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    bounded(systemClock, ATTEMPT_MS, new AbortController().signal, doing, ask);
  for (let race = 0; race < MOST_RACES; race++) {
    const entry = await call("reading", (signal) => records.read(key, { signal }));
    const slots = entry === null ? [] : decode(entry.record);
    if (slots.includes(slot)) return false;
    if (slots.length >= REMEMBERED && slot < slots[0]!) return false;
    const next = [...slots, slot].sort((a, b) => a - b).slice(-REMEMBERED);
    // An error here means that we do not know whether the slot is ours: node-cron then skips it, and says so.
    const written = await call("claiming", (signal) =>
      records.write(key, entry?.version ?? null, JSON.stringify({ v: 1, slots: next }), { signal }),
    );
    if (written !== null) return true;
  }
  throw new ConclaveError("unavailable", `record "${key}" is written by too many at once`);
}

function decode(text: string): number[] {
  try {
    const { v, slots } = JSON.parse(text) as { v?: unknown; slots?: unknown };
    if (v === 1 && Array.isArray(slots) && slots.every((slot) => typeof slot === "number")) return slots;
  } catch {
    // falls through
  }
  throw new ConclaveError("conflict", "the task's record cannot be read; nothing is run");
}
