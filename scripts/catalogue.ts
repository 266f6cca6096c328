/** The backends, for the table of promises. */
import { memoryBackend } from "../src/backends/memory/index.js";
import type { GuaranteeRow } from "./guarantees-page.js";

export const backendCatalogue: readonly GuaranteeRow[] = [
  { name: "memory", url: "memory:", guarantees: memoryBackend().guarantees },
];
