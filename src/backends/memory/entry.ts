import type { Backend } from "../../seam/backend.js";
import type { BackendEntry } from "../../seam/entry.js";

/** The same URL must open the same store, or two candidates could lead: one store per URL in the process. */
const opened = new Map<string, Promise<Backend>>();

export const memory: BackendEntry = {
  name: "memory",
  title: "memory",
  ephemeral: true,
  schemes: ["memory"],
  example: "memory:",
  open: (url) => {
    const backend = opened.get(url.href) ?? import("./index.js").then(({ memoryBackend }) => memoryBackend());
    opened.set(url.href, backend);
    return backend;
  },
  guarantees: async () => (await import("./index.js")).memoryBackend().guarantees,
};
