/**
 * Safety rules, each broken in turn. A mutant is a patch of the *compiled* code:
 * production code has no switches for tests. Every text to be replaced must
 * occur exactly once; if the code moves on, the mutant is red, not skipped.
 */
import type { Rule, StoreKind, SubjectKind } from "../../src/testing/sim/index.js";

export interface Edit {
  /** Compiled file, seen from the build directory. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export interface Mutant {
  readonly name: string;
  /** The rule that it breaks. */
  readonly rule: string;
  readonly edits: readonly Edit[];
  /** Invariants that are left out, so that another must catch it. */
  readonly ignore?: readonly Rule[];
  /** Stores on which it can show; default all. */
  readonly stores?: readonly StoreKind[];
  /** What is done leading. Default `election`. */
  readonly subject?: SubjectKind;
}

const CANDIDATE = "src/election/candidate.js";
const KEPT_LEASE = "src/law/lease.js";
const TENURE = "src/law/tenure.js";
const CONFIRM = "src/law/confirm.js";
const TOKEN_FLOOR = "src/law/token-floor.js";
const DEADLINE = "src/law/deadline.js";
const WORK = "src/election/work.js";
const OBSERVE = "src/election/observe.js";
const RECORD = "src/record/backend.js";
const LEASE_READER = "src/record/lease-reader.js";
const HOLD = "src/record/hold.js";
const LEASE = "src/record/lease.js";
const FILES = "src/backends/file/records.js";
const NUMBERED_LINKS = "src/files/numbered-links.js";
const FILE_BACKEND = "src/backends/file/index.js";
const COMBINED = "src/backends/etcd/combined-transactions.js";
const LAYOUTS = "src/backends/etcd/layouts.js";
const SHARED_LEASE = "src/backends/etcd/shared-lease.js";
const RENEW_LEASE = "src/backends/etcd/renew-lease.js";
const PREDECESSOR_LOOKUP = "src/backends/etcd/predecessor-lookup.js";
const VERIFY_KEYS = "src/backends/etcd/verify-keys.js";
const ETCD_HOLD = "src/backends/etcd/hold.js";

const CLOCKS = "{ now: this.#clock.now(), wall: this.#clock.wall(), boot: this.#clock.boot() }";

/** The simulator's own reckoning of deadlines catches these at once; what counts is that two leaders are seen. */
const SEEN: readonly Rule[] = ["late-stop", "stop-order", "false-loss"];

const RECORDS: readonly StoreKind[] = ["observer", "timed"];

export const MUTANTS: readonly Mutant[] = [
  {
    name: "renewal counted from its answer",
    rule: "time counts from the question",
    ignore: SEEN,
    edits: [
      {
        file: KEPT_LEASE,
        find: "this.#deadline.extend(answer.asked, this.#ttlMs);",
        replace: `this.#deadline.extend(${CLOCKS}, this.#ttlMs);`,
      },
    ],
  },
  {
    name: "grant counted from its answer",
    rule: "time counts from the question; confirm before the term opens",
    ignore: SEEN,
    edits: [
      {
        file: CONFIRM,
        find: "marginMs, hold.asked, hold.ttlMs);",
        replace: `marginMs, ${CLOCKS.replaceAll("this.#clock", "clock")}, hold.ttlMs);`,
      },
    ],
  },
  {
    name: "no margin",
    rule: "holder early, challenger late",
    ignore: SEEN,
    edits: [{ file: DEADLINE, find: "asked.now + ttlMs - this.marginMs", replace: "asked.now + ttlMs" }],
  },
  {
    name: "held is a flag set by a timer",
    rule: "held is computed from the clock at the call",
    ignore: SEEN,
    edits: [
      {
        file: TENURE,
        find: "        const left = state.kind ===",
        replace: "        return 1; const left = state.kind ===",
      },
    ],
  },
  {
    name: "the getter does not end the term",
    rule: "the getter itself ends the term",
    edits: [
      {
        file: TENURE,
        find: `            this.expired();
        else
            this.revoked(this.#lease.lost);`,
        replace: "{}\n",
      },
    ],
  },
  {
    name: "no watchdog",
    rule: "two independent arms: the watchdog ends the term while a renewal hangs",
    edits: [
      {
        file: KEPT_LEASE,
        find: "this.#stopKeeping = this.#keep(this);\n        this.#guard();",
        replace: "this.#stopKeeping = this.#keep(this);",
      },
    ],
  },
  {
    name: "the renew timer re-arms the deadline",
    rule: "the deadline moves only on an answer",
    ignore: SEEN,
    edits: [
      {
        file: KEPT_LEASE,
        find: "ask: (signal) => hold.renew({ signal }),",
        replace:
          "ask: (signal) => { lease.accept({ asked: { now: clock.now(), wall: clock.wall(), boot: clock.boot() } }); return hold.renew({ signal }); },",
      },
    ],
  },
  {
    name: "never expires while the store errs",
    rule: "don't-know never turns into yes",
    ignore: SEEN,
    edits: [
      {
        file: KEPT_LEASE,
        find: "lease.attempted({ latencyMs, error });\n",
        replace:
          "lease.attempted({ latencyMs, error }); lease.accept({ asked: { now: clock.now(), wall: clock.wall(), boot: clock.boot() } });\n",
      },
    ],
  },
  {
    name: "don't-know of a renewal is taken for lost",
    rule: "don't-know never turns into no",
    edits: [
      { file: KEPT_LEASE, find: "lease.attempted({ latencyMs, error });\n", replace: "lease.lose();\n" },
    ],
  },
  {
    name: "don't-know of a write is taken for written",
    rule: "don't-know never turns into yes",
    stores: [...RECORDS, "file"],
    edits: [
      {
        file: HOLD,
        find: "this.#unresolved = true;\n            throw error;",
        replace: "return { version: this.#version };",
      },
    ],
  },
  {
    name: "a stale read is taken for lost",
    rule: "lost only if certain",
    stores: RECORDS,
    edits: [
      {
        file: HOLD,
        find: "return (entry.version > this.#version || entry.current === true) && !this.#ours(entry);",
        replace: "return !this.#ours(entry) || entry.version < this.#version;",
      },
    ],
  },
  {
    name: "suspend not counted",
    rule: "a suspended machine's term is over",
    edits: [{ file: DEADLINE, find: "if (this.#suspended(now))", replace: "if (false)" }],
  },
  {
    name: "renewal without compare",
    rule: "only a successful conditional write extends a term",
    stores: [...RECORDS, "file"],
    edits: [
      {
        file: HOLD,
        find: `            if (this.#lost(entry))
                return "lost";
            if (entry === null || !this.#ours(entry))
                break;`,
        replace: "            if (entry === null) break;",
      },
    ],
  },
  {
    name: "release without compare",
    rule: "release never harms a successor",
    stores: [...RECORDS, "file"],
    edits: [
      {
        file: HOLD,
        find: "            const answer = await this.#write(vacant, options);",
        replace: `            const answer = "lost";
            const now = await this.#store.read(this.#key, options);
            if (now !== null) await this.#store.write(this.#key, now.version, { ...this.#record, holder: null }, options);`,
      },
    ],
  },
  {
    name: "token not raised on own re-acquisition",
    rule: "a token is never reused, not even by the same candidate",
    stores: RECORDS,
    edits: [
      {
        file: RECORD,
        find: "const hold = await this.#acquire(candidacy, takeover.expected, wait, signal);",
        replace: `const hold = await this.#acquire(candidacy, takeover.expected, wait, signal);
                    if (hold !== null && entry?.record.holder === candidacy.candidate) hold.token = entry.record.token ?? entry.version;`,
      },
      {
        file: TOKEN_FLOOR,
        find: "if (token >= lowest)",
        replace: "if (true)",
      },
    ],
  },
  {
    name: "identity without a random part",
    rule: "a candidate's id is never reused",
    stores: [...RECORDS, "file"],
    edits: [{ file: CANDIDATE, find: "-${this.clock.uniqueId()}`", replace: "`" }],
  },
  {
    name: "challenger counts from before the read",
    rule: "holder early, challenger late",
    stores: ["observer"],
    edits: [
      {
        file: LEASE_READER,
        find: "const entry = await bounded(this.#clock, attemptMs, signal, `reading election",
        replace:
          "const before = this.#clock.now(); const entry = await bounded(this.#clock, attemptMs, signal, `reading election",
      },
      {
        file: LEASE_READER,
        find: "observed(this.#seen.get(key), entry, this.#clock.now(), attemptMs, certain)",
        replace: "observed(this.#seen.get(key), entry, before, attemptMs, certain)",
      },
    ],
  },
  {
    name: "challenger waits its own ttl instead of the record's",
    rule: "a record names the ttl that others wait",
    stores: ["observer", "file"],
    edits: [
      {
        file: LEASE,
        find: "const ttlMs = entry.record.ttlMs ?? ownTtlMs;",
        replace: "const ttlMs = ownTtlMs;",
      },
    ],
  },
  {
    name: "unreadable record is free",
    rule: "unreadable means held by someone unknown, never free",
    stores: ["observer"],
    edits: [{ file: LEASE, find: "holder: UNKNOWN_HOLDER, ttlMs", replace: "holder: null, ttlMs" }],
  },
  {
    name: "an undone write clears whatever record it finds",
    rule: "only our own record is cleared",
    stores: RECORDS,
    edits: [
      {
        file: "src/record/unanswered-writes.js",
        find: "if (isOurs(entry, write)) {",
        replace: "if (entry !== null) {",
      },
    ],
  },
  {
    name: "watch trusted alone",
    rule: "every push has a poll underneath",
    stores: RECORDS,
    edits: [
      {
        file: RECORD,
        find: "Math.min(Math.max(1, waitMs), this.#pollAfter(candidacy.retryMs))",
        replace: "1e9",
      },
    ],
  },
  {
    name: "released before the work has settled",
    rule: "abort, let the work settle, release, report",
    edits: [
      {
        file: TENURE,
        find: "const drained = settled === undefined ||",
        replace: "const drained = true ||",
      },
    ],
  },
  {
    name: "released when the drain runs out",
    rule: "what did not drain is not released before its deadline",
    edits: [
      {
        file: TENURE,
        find: "(await settlesWithin(clock, timing.drainMs, this.#final, settled));",
        replace: "(await settlesWithin(clock, timing.drainMs / 4, this.#final, settled), true);",
      },
    ],
  },
  {
    name: "next term before the last work has settled",
    rule: "the next term starts only after the last one's work has settled",
    edits: [
      {
        file: WORK,
        find: "return settle(tenure, finished, options);",
        replace: 'return { kind: "returned" };',
      },
    ],
  },
  {
    name: "a timer outlives the term",
    rule: "nothing is left after close",
    edits: [{ file: KEPT_LEASE, find: "this.#watchdog?.cancel();", replace: "" }],
  },
  {
    name: "end reported twice",
    rule: "exactly one end per term",
    edits: [
      {
        file: TENURE,
        find: "        this.context.ended(this);",
        replace: '        events.emit("ended", { term: this.term, end }); this.context.ended(this);',
      },
    ],
  },
  {
    name: "observers go back",
    rule: "observers never go back to an older leader",
    stores: RECORDS,
    edits: [
      {
        file: OBSERVE,
        find: "if (leader.token === this.#vacated)",
        replace: "if (false)",
      },
      {
        file: RECORD,
        find: "if (entry === null || shown.accepts(entry, pollMs)) {",
        replace: "if (true) {",
      },
    ],
  },
  {
    name: "no pause after a lost race",
    rule: "store operations are bounded",
    stores: RECORDS,
    edits: [{ file: RECORD, find: "if (races > 0)\n", replace: "if (false)\n" }],
  },
  {
    name: "an observer of a lagging store polls in a tight loop",
    rule: "store operations are bounded (a bug that the simulator found)",
    stores: RECORDS,
    edits: [
      {
        file: RECORD,
        find: "silentIn > 0 ? Math.min(poll, Math.max(1, silentIn)) : poll",
        replace: "last && entry ? Math.min(poll, Math.max(1, silentIn)) : poll",
      },
    ],
  },
  {
    name: "margin of what was asked, not of what was granted",
    rule: "the margin is a share of the lease (a bug that the simulator found)",
    stores: ["queue"],
    ignore: SEEN,
    edits: [{ file: CONFIRM, find: "* Math.max(1, hold.ttlMs / timing.ttlMs)", replace: "" }],
  },
  {
    name: "file: no second look",
    rule: "re-list to confirm that the record is the newest",
    stores: ["file"],
    edits: [{ file: FILES, find: "confirm(after, written, before);", replace: "" }],
  },
  {
    name: "file: only the newest record is kept",
    rule: "a listing is not atomic: keep sixteen",
    stores: ["file"],
    edits: [{ file: NUMBERED_LINKS, find: "const KEPT_NUMBERS = 16;", replace: "const KEPT_NUMBERS = 1;" }],
  },
  {
    name: "file: the acquiring number is not made durable",
    rule: "a loss of power does not bring a token back",
    stores: ["file"],
    edits: [{ file: FILE_BACKEND, find: '? "number"', replace: '? "none"' }],
  },
  {
    name: "etcd: no second query after a wake",
    rule: "a wake is a hint: ask again who is ahead",
    stores: ["queue"],
    edits: [
      {
        file: LAYOUTS,
        find: "await watch.untilChanged(predecessor);",
        replace: "await watch.untilChanged(predecessor); return;",
      },
    ],
  },
  {
    // Everybody who joined in the same transaction has the same create revision: the key tells whose queue it was.
    name: "etcd: another election's queue is taken for one's own",
    rule: "each gets the results of its own operations",
    stores: ["queue"],
    edits: [
      {
        file: COMBINED,
        find: "answer.results.slice(from, at)",
        replace: "answer.results.slice(0, at - from)",
      },
      {
        file: LAYOUTS,
        find: "own?.key === candidateKey.key && own.createRevision",
        replace: "own?.createRevision",
      },
    ],
  },
  {
    // Three looks in a row make sure of it; only without all of them does it go wrong, as it did in Go's Campaign.
    name: "etcd: leads without a look at its own lease",
    rule: "confirm before the term opens",
    stores: ["queue"],
    edits: [
      {
        file: LAYOUTS,
        find: "await watch.untilChanged(predecessor);\n            if (!lease.isFresh)",
        replace: "await watch.untilChanged(predecessor);\n            if (false)",
      },
      { file: PREDECESSOR_LOOKUP, find: "if (own?.createRevision === token)", replace: "if (true)" },
      {
        file: ETCD_HOLD,
        find: "this.asked = lease.extension.asked;",
        replace: "this.asked = { ...lease.extension.asked, now: lease.extension.asked.now + lease.ageMs };",
      },
    ],
  },
  {
    name: "etcd: looked up together, a candidate takes the answer of another",
    rule: "each question has its own answer",
    stores: ["queue"],
    edits: [
      {
        file: PREDECESSOR_LOOKUP,
        find: "results[2 * i]?.kvs[0], results[2 * i + 1]?.kvs[0]",
        replace: "results[2 * i]?.kvs[0], results[1]?.kvs[0]",
      },
    ],
  },
  {
    name: "etcd: a lookup that nobody waits for goes on",
    rule: "nothing is left after close",
    stores: ["queue"],
    edits: [{ file: PREDECESSOR_LOOKUP, find: "if (--waiting === 0)", replace: "if (false)" }],
  },
  {
    name: "etcd: keep-alives of a deposed leader count",
    rule: "a renewal counts only if both answers carry the same raft term",
    stores: ["queue"],
    edits: [{ file: VERIFY_KEYS, find: "if (raftTerm === answer.raftTerm)", replace: "if (true)" }],
  },
  {
    name: "two renewers disagree: a term counts from when it is told that its session was extended",
    rule: "time counts from the question, whoever asked it",
    stores: ["queue"],
    ignore: SEEN,
    edits: [
      {
        file: KEPT_LEASE,
        find: "lease.accept(session.extension);",
        replace:
          "lease.accept({ asked: { ...session.extension.asked, now: session.extension.asked.now + attempt.latencyMs } });",
      },
    ],
  },
  {
    name: "a session is lost but only one of the terms on it ends",
    rule: "a lost lease ends every term on it",
    stores: ["queue"],
    edits: [
      {
        file: KEPT_LEASE,
        find: "lost: () => lease.lose(),",
        replace: "lost: () => {},",
      },
      {
        file: "src/backends/etcd/lose-all.js",
        find: 'if (!many || candidateKey.state !== "held")',
        replace: "if (candidateKey !== candidateKeys.values().next().value) break; else",
      },
    ],
  },
  {
    name: "etcd: resigns by revoking the shared lease",
    rule: "a lease serves many: the key is deleted, not the lease revoked",
    stores: ["queue"],
    edits: [
      {
        file: ETCD_HOLD,
        find: "return this.#lease.remove(this.#candidateKey, signal, this.#attemptMs);",
        replace:
          "return this.#client.leaseRevoke(this.#candidateKey.lease, { signal, limitMs: this.#attemptMs });",
      },
    ],
  },
  {
    name: "etcd: the key of a lost term is left behind",
    rule: "what core does not release the directory takes away, since the shared lease lives on",
    stores: ["queue"],
    edits: [
      {
        file: SHARED_LEASE,
        find: 'if (candidateKey.state === "held")\n            this.#abandon(candidateKey, at);',
        replace: "",
      },
    ],
  },
  {
    name: "etcd: with one key for all, waits for its watch alone",
    rule: "every push has a poll underneath (a bug that the simulator found)",
    stores: ["queue"],
    edits: [
      {
        file: RENEW_LEASE,
        find: "token !== undefined || predecessor !== undefined",
        replace: "token !== undefined",
      },
    ],
  },
  {
    name: "etcd: close does not wait for a lease being revoked",
    rule: "nothing is left after close (a bug that the simulator found)",
    stores: ["queue"],
    edits: [
      {
        file: SHARED_LEASE,
        find: "return this.#closed;\n        const now",
        replace: "return Promise.resolve();\n        const now",
      },
    ],
  },
  {
    name: "etcd: waits for its watch alone",
    rule: "every push has a poll underneath",
    stores: ["queue"],
    edits: [
      {
        file: VERIFY_KEYS,
        find: "!isStill(candidateKey.predecessor, found)",
        replace: "false",
      },
    ],
  },
];
