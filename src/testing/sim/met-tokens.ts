/**
 * Which tokens of others each process has met while it campaigned, by the
 * answers that reached it: the simulator's own account of what a candidate must
 * have seen.
 */
import type { Transaction, TransactionAnswer } from "../../backends/etcd/client.js";

type Process = object;

interface Account {
  readonly leases: Set<bigint>;
  /** By election: of others, and of keys of its own. */
  readonly tokens: Map<string, { readonly met: Set<bigint>; own: bigint }>;
}

export class MetTokens {
  readonly #accounts = new WeakMap<Process, Account>();

  granted(process: Process, lease: bigint): void {
    this.#accountOf(process).leases.add(lease);
  }

  /** Campaigns and renewals ask for keys alone; whoever asks for values only observes. */
  answered(
    process: Process,
    { then, otherwise }: Transaction,
    { succeeded, results }: TransactionAnswer,
  ): void {
    const { leases, tokens } = this.#accountOf(process);
    (succeeded ? then : otherwise).forEach((operation, i) => {
      if (operation.kind !== "range" || operation.keysOnly !== true) return;
      const kvs = results[i]?.kvs ?? [];
      // Ours first: whoever is behind us in a queue does not count.
      for (const { key, createRevision, lease } of kvs.toSorted((a) => (leases.has(a.lease) ? -1 : 1))) {
        // A key is the election's name, alone or followed by a slash and a lease.
        const [election = "", queued] = key.split("/");
        const known = tokens.get(election) ?? { met: new Set(), own: -1n };
        tokens.set(election, known);
        if (leases.has(lease)) known.own = createRevision;
        else if (queued === undefined || createRevision < known.own) known.met.add(createRevision);
      }
    });
  }

  /** The highest of those that count; -1 if none does. */
  highest(process: Process, election: string, counts: (token: bigint) => boolean): bigint {
    const met = this.#accounts.get(process)?.tokens.get(election)?.met ?? [];
    return [...met].filter(counts).reduce((highest, token) => (token > highest ? token : highest), -1n);
  }

  forget(process: Process, election: string): void {
    this.#accounts.get(process)?.tokens.delete(election);
  }

  #accountOf(process: Process): Account {
    const account = this.#accounts.get(process) ?? { leases: new Set(), tokens: new Map() };
    this.#accounts.set(process, account);
    return account;
  }
}
