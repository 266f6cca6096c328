import { resolve } from "node:path";
import { withAbsolutePaths } from "../../kit/url-paths.js";
import type { BackendEntry } from "../../seam/entry.js";

export const raft: BackendEntry = {
  name: "raft",
  title: "Raft peers",
  schemes: ["raft"],
  example: "raft://n1@host:7400,n2@host:7400,n3@host:7400?self=n1&dir=/var/lib/app/raft&key-file=…",
  secrets: ["CONCLAVE_RAFT_KEY"],
  timing: { ttlMs: 2_000 },
  open: async (url, options) => (await import("./index.js")).openRaft(url.href, options),
  openText: async (url, options) => (await import("./index.js")).openRaft(url, options),
  // The usual rule would take all voters but the last for a user's name.
  where: async (url) => (await import("./options.js")).parseRaftUrl(url.href).peers.join(","),
  absolute: (url) => withAbsolutePaths(url, ["dir", "key-file"], resolve),
  guarantees: async () => (await import("./backend.js")).raftGuarantees,
};
