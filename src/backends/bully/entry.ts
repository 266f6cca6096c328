import { resolve } from "node:path";
import { withAbsolutePaths } from "../../kit/url-paths.js";
import type { BackendEntry, OpenOptions } from "../../seam/entry.js";
import type { Backend } from "../../seam/backend.js";

const open = async (url: string, { log }: OpenOptions): Promise<Backend> =>
  (await import("./index.js")).openBully(url, { ...(log !== undefined && { log }) });

export const bully: BackendEntry = {
  name: "bully",
  title: "Bully peers",
  schemes: ["bully"],
  example: "bully://n1@host:7500,n2@host:7500,n3@host:7500?self=n1&unsafe=true&key-file=…",
  secrets: ["CONCLAVE_BULLY_KEY"],
  timing: { ttlMs: 2_000 },
  open: (url, options) => open(url.href, options),
  openText: open,
  // The usual rule would take all peers but the last for a user's name.
  where: async (url) => (await import("./options.js")).parseBullyUrl(url.href).peers.join(","),
  absolute: (url) => withAbsolutePaths(url, ["dir", "key-file"], resolve),
  guarantees: async () => (await import("./backend.js")).bullyGuarantees,
};
