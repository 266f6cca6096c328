/** The double dialer as something to show: plain data, ready for JSON. */

/** Whom the list names. */
export const CUSTOMERS: readonly string[] = ["Ada", "Bela", "Carl", "Dora", "Egon", "Fanny"];
export const INSTANCES: readonly string[] = ["node1", "node2", "node3", "node4", "node5"];

/** When the leader falls. */
export const MOMENTS = {
  "before-claim": "killed just before 9:00",
  "after-claim": "killed between the claim and the first call",
  "during-calls": "killed during the third call",
  "before-noting": "killed after the last call, before it could write it down",
  frozen: "frozen after the second call, and woken when another has called the rest",
} as const;

export type Moment = keyof typeof MOMENTS;

/** Those that can be brought about here, in the order of the week. */
export const POSSIBLE: readonly Moment[] = (Object.keys(MOMENTS) as Moment[]).filter(
  (moment) => moment !== "frozen" || process.platform !== "win32",
);

/** `repeat`: this customer has been called for this list. `stale`: by a leader that has been succeeded. */
export type CallResult = "connected" | "repeat" | "stale";

/** A call that came to the exchange, and what it made of it. */
export interface Ring {
  readonly customer: string;
  /** The scheduled instant: together with the customer, the key that makes a repeat a repeat. */
  readonly list: number;
  readonly by: string;
  /** `null`: without Conclave there is none. */
  readonly token: string | null;
  readonly outcome: CallResult;
}

/** What became of one list: customers by how often they were called, calls by why they were refused. */
export interface Sums {
  readonly once: number;
  readonly more: number;
  readonly missed: number;
  readonly repeats: number;
  readonly stale: number;
}

export function sumsOf(log: readonly Ring[], list: number): Sums {
  const rings = log.filter((ring) => ring.list === list);
  const count = (outcome: CallResult): number => rings.filter((ring) => ring.outcome === outcome).length;
  const called = CUSTOMERS.map(
    (customer) => rings.filter((ring) => ring.customer === customer && ring.outcome === "connected").length,
  );
  return {
    once: called.filter((times) => times === 1).length,
    more: called.filter((times) => times > 1).length,
    missed: called.filter((times) => times === 0).length,
    repeats: count("repeat"),
    stale: count("stale"),
  };
}

/** What was done to the leader, and who went on. */
export interface Fall {
  readonly by: string;
  /** From 9:00 to the fall; before 9:00 it is negative. */
  readonly afterNineMs: number;
  readonly successor: string | null;
  /** From the fall to the successor's first word to the exchange. */
  readonly gapMs: number | null;
}

export interface Day {
  /** Its nine o'clock, epoch milliseconds. */
  readonly at: number;
  /** `null`: the day without Conclave, on which nobody falls. */
  readonly moment: Moment | null;
  readonly fall: Fall | null;
  /** The list is called, and that is written down. */
  readonly settled: boolean;
  readonly sums: Sums;
}

export interface InstanceView {
  readonly name: string;
  readonly state: "starting" | "follower" | "leader" | "frozen" | "gone";
}

export interface DialerState {
  readonly phase: "idle" | "starting" | "running" | "done" | "failed";
  readonly moments: readonly { readonly id: Moment; readonly label: string }[];
  readonly customers: readonly string[];
  readonly dayMs: number;
  readonly instances: readonly InstanceView[];
  /** The first is the one without Conclave. */
  readonly days: readonly Day[];
  readonly log: readonly Ring[];
  /** Why it could not be shown. */
  readonly error: string | null;
}
