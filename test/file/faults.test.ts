/**
 * Real processes, stopped beyond their ttl or killed, over and over. Never do two
 * hold leadership at one instant; long form with CONCLAVE_LONG (faults of each
 * kind: CONCLAVE_ROUNDS).
 */
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { kill, pooled, start } from "./children.js";
import { rounds, tempDirectory } from "./support.js";

const TTL_MS = 2000;
const CANDIDATES = 3;

/** When one process was seen to hold one token. Instants are of the machine's monotonic clock, the same for all. */
interface Tenure {
  readonly pid: number;
  readonly token: bigint;
  readonly first: bigint;
  last: bigint;
}

/** Takes what all candidates write; refuses a token lower than one it has seen. */
class Leadership {
  readonly tenures = new Map<string, Tenure>();
  highest = 0n;
  leader = 0;
  accepted = 0;
  refused = 0;
  staleAccepted = 0;
  #owner = new Map<bigint, number>();

  line(pid: number, text: string): void {
    const [token, at] = text.split(" ").map(BigInt) as [bigint, bigint];
    const key = `${pid}/${token}`;
    const tenure = this.tenures.get(key);
    if (tenure === undefined) this.tenures.set(key, { pid, token, first: at, last: at });
    else tenure.last = at;
    if (token < this.highest) return void this.refused++;
    this.accepted++;
    if ((this.#owner.get(token) ?? pid) !== pid) this.staleAccepted++; // one token, two writers
    this.#owner.set(token, pid);
    if (token > this.highest) [this.highest, this.leader] = [token, pid];
  }

  /** Pairs that held at one instant, or whose tokens fell. */
  violations(): string[] {
    const order = [...this.tenures.values()].sort((a, b) => (a.first < b.first ? -1 : 1));
    const found: string[] = [];
    for (const [i, tenure] of order.entries()) {
      const next = order[i + 1];
      if (next === undefined) break;
      if (next.first <= tenure.last) {
        found.push(
          `${tenure.pid} and ${next.pid} both held for ${Number(tenure.last - next.first) / 1e6} ms`,
        );
      }
      if (next.token <= tenure.token) found.push(`token ${next.token} after ${tenure.token}`);
    }
    return found;
  }
}

type Fault = "stop" | "kill";

interface Outcome {
  readonly leadership: Leadership;
  readonly takeoverMs: number[];
}

/** Three candidates and one who hits whoever leads. */
async function siege(fault: Fault, rule: "on" | "off", times: number): Promise<Outcome> {
  const directory = await tempDirectory();
  const leadership = new Leadership();
  const candidates = new Map<number, ChildProcess>();
  const drained: Promise<void>[] = [];
  const join = (): void => {
    const child = start("candidate", directory, String(TTL_MS), rule);
    const lines = createInterface({ input: child.stdout! });
    lines.on("line", (line) => leadership.line(child.pid!, line));
    drained.push(new Promise((resolve) => lines.once("close", resolve)));
    candidates.set(child.pid!, child);
  };
  const newLeader = async (after: bigint): Promise<void> =>
    vi.waitFor(() => expect(leadership.highest).toBeGreaterThan(after), { timeout: 15_000, interval: 5 });

  for (let i = 0; i < CANDIDATES; i++) join();
  await newLeader(0n);
  const takeoverMs: number[] = [];
  for (let i = 0; i < times; i++) {
    await sleep(20 + Math.random() * 150);
    const victim = candidates.get(leadership.leader)!;
    const token = leadership.highest;
    const hit = performance.now();
    victim.kill(fault === "stop" ? "SIGSTOP" : "SIGKILL");
    await newLeader(token);
    takeoverMs.push(performance.now() - hit);
    if (fault === "stop") {
      await sleep(Math.max(0, TTL_MS + 50 - (performance.now() - hit)));
      victim.kill("SIGCONT");
      await sleep(30);
    } else {
      candidates.delete(victim.pid!);
      join();
    }
  }
  await Promise.all([...candidates.values()].map(kill));
  await Promise.all(drained);
  return { leadership, takeoverMs };
}

describe("a leader on files", () => {
  const total = rounds(6, 200);
  const part = (share: number, groups: number): number[] =>
    Array.from({ length: groups }, (_, i) => Math.floor((share + i) / groups));

  it(
    `stopped ${total} times and killed ${total} times never leads beside its successor`,
    { timeout: 120_000 + total * 8000 },
    async () => {
      const groups = Math.min(5, Math.ceil(total / 3));
      const sieges = [
        ...part(total, groups).map((times) => ["stop", "on", times] as const),
        ...part(Math.ceil(total / 2), Math.min(4, groups)).map((times) => ["kill", "off", times] as const),
        ...part(Math.floor(total / 2), Math.min(2, groups)).map((times) => ["kill", "on", times] as const),
      ];
      const outcomes = await pooled(
        4,
        sieges.map(
          ([fault, rule, times]) =>
            () =>
              siege(fault, rule, times),
        ),
      );
      const report = sieges.map(([fault, rule, times], i) => {
        const { leadership, takeoverMs } = outcomes[i]!;
        const median = takeoverMs.toSorted((a, b) => a - b)[takeoverMs.length >> 1] ?? 0;
        return `${fault} x ${times}, dead-process rule ${rule}: ${leadership.tenures.size} terms, ${leadership.accepted} writes accepted, ${leadership.refused} refused, takeover median ${Math.round(median)} ms`;
      });
      console.log(report.join("\n"));
      for (const { leadership } of outcomes) {
        expect(leadership.violations()).toEqual([]);
        expect(leadership.staleAccepted).toBe(0);
      }
      const hits = sieges.reduce((sum, [, , times]) => sum + times, 0);
      expect(hits).toBe(2 * total);
      expect(
        outcomes.reduce((sum, { leadership }) => sum + leadership.tenures.size, 0),
      ).toBeGreaterThanOrEqual(hits);
    },
  );
});
