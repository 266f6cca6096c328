/**
 * Executes a will: gives back, in the name of a process that is certainly dead,
 * what it held. In doubt it does nothing, and the leases run out by themselves.
 */
import { systemClock } from "../kit/clock.js";
import { ConclaveError, describe } from "../kit/errors.js";
import { StopSource } from "../kit/stop.js";
import { bounded, sleep } from "../kit/wait.js";
import { openBackend } from "../open.js";
import type { Bequest, Will } from "../will/document.js";
import { readWill, removeWill } from "../will/file.js";
import { here, isDead } from "../will/processes.js";

/** For all of it: waiting for deaths that are under way, and all stores together. */
const BUDGET_MS = 3_000;
const LOOK_MS = 5;

/** What became of a will. */
export interface Execution {
  readonly released: number;
  /** Over already, or somebody else's by now. */
  readonly notHeld: number;
  /** What could not be given back, and why. Those leases run out. */
  readonly failures: readonly string[];
}

/** `patient`: the process was alive a moment ago, so its death is waited for. Throws if nothing may be given back. */
export async function executeWill(path: string, patient: boolean): Promise<Execution> {
  const until = systemClock.now() + BUDGET_MS;
  const will = await readWill(path);
  await assertDead(will, patient ? until : 0);
  const counted = { released: 0, notHeld: 0 };
  const failures: string[] = [];
  const all = (signal: AbortSignal): Promise<unknown> =>
    Promise.all(
      will.bequests.map((bequest) =>
        giveBack(bequest, signal, counted, failures).catch((error: unknown) => {
          failures.push(describe(error));
        }),
      ),
    );
  const leftMs = Math.max(1, until - systemClock.now());
  await bounded(systemClock, leftMs, new StopSource(), "giving leaderships back", all).catch(
    (error: unknown) => {
      failures.push(describe(error));
    },
  );
  if (failures.length === 0) await removeWill(path);
  return { ...counted, failures };
}

/** Every process that could act must be dead for certain. */
async function assertDead(will: Will, until: number): Promise<void> {
  const { place, processes, doubt } = will;
  if (doubt !== null) throw inDoubt(doubt);
  const { bootId, pidNamespace } = here();
  if (place.bootId !== bootId)
    throw inDoubt("it was written before this machine was started, or on another one");
  if (place.pidNamespace !== pidNamespace) throw inDoubt("it was written in another pid namespace");
  for (const process of processes) {
    while (!isDead(process)) {
      if (systemClock.now() >= until) throw inDoubt(`process ${process.pid} is not certainly dead`);
      await sleep(systemClock, LOOK_MS, new StopSource());
    }
  }
}

async function giveBack(
  { url, imports, claims }: Bequest,
  signal: AbortSignal,
  counted: { released: number; notHeld: number },
  failures: string[],
): Promise<void> {
  if (claims.length === 0) return;
  for (const module of imports) await import(module);
  await using backend = await openBackend(url, { visitor: true });
  const { release } = backend;
  if (release === undefined) throw new ConclaveError("unsupported", "this store cannot release for another");
  await Promise.all(
    claims.map(async (claim) => {
      try {
        const answer = await release.call(backend, claim, { signal });
        if (answer === "released") counted.released++;
        else counted.notHeld++;
      } catch (error) {
        failures.push(`election "${claim.election}": ${describe(error)}`);
      }
    }),
  );
}

function inDoubt(why: string): ConclaveError {
  return new ConclaveError("state", `nothing is given back: ${why}; the leases run out by themselves`);
}
