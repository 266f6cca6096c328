/** Every rule that is broken in turn. */
import { CANDIDACY_MUTANTS } from "./candidacy-mutants.js";
import { CRON_MUTANTS } from "./cron-mutants.js";
import { LEASE_MUTANTS } from "./lease-mutants.js";
import { MEMORY_MUTANTS } from "./memory-mutants.js";
import { MUTANTS } from "./mutants.js";
import { RAFT_MUTANTS } from "./raft-mutants.js";
import { SESSION_MUTANTS } from "./session-mutants.js";
import { CONSUL_MUTANTS } from "./consul-mutants.js";
import { STORE_CLOCK_MUTANTS } from "./store-clock-mutants.js";
import { SUCCESSION_MUTANTS } from "./succession-mutants.js";
import { TRANSFER_MUTANTS } from "./transfer-mutants.js";
import { WILL_MUTANTS } from "./will-mutants.js";
import type { Mutant } from "./mutants.js";

export const ALL_MUTANTS: readonly Mutant[] = [
  ...MUTANTS,
  ...LEASE_MUTANTS,
  ...SESSION_MUTANTS,
  ...MEMORY_MUTANTS,
  ...STORE_CLOCK_MUTANTS,
  ...WILL_MUTANTS,
  ...TRANSFER_MUTANTS,
  ...SUCCESSION_MUTANTS,
  ...CONSUL_MUTANTS,
  ...RAFT_MUTANTS,
  ...CANDIDACY_MUTANTS,
  ...CRON_MUTANTS,
];
