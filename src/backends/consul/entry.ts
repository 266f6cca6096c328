import { resolve } from "node:path";
import { withAbsolutePaths } from "../../kit/url-paths.js";
import type { BackendEntry } from "../../seam/entry.js";

export const consul: BackendEntry = {
  name: "consul",
  title: "Consul",
  schemes: ["consul", "consuls"],
  example: "consul://host:8500/prefix",
  // Variables that only name a file or an address are no secrets.
  secrets: ["CONSUL_HTTP_TOKEN", "CONSUL_HTTP_AUTH"],
  open: async (url) => (await import("./index.js")).openConsul(url),
  absolute: (url) => withAbsolutePaths(url, ["ca", "cert", "key", "tokenFile"], resolve),
  guarantees: async () => (await import("./index.js")).consulBackend({ env: {} }).guarantees,
};
