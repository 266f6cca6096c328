import type { BackendEntry } from "../../seam/entry.js";

export const consul: BackendEntry = {
  name: "consul",
  title: "Consul",
  schemes: ["consul", "consuls"],
  example: "consul://host:8500/prefix",
  // Variables that only name a file or an address are no secrets.
  secrets: ["CONSUL_HTTP_TOKEN", "CONSUL_HTTP_AUTH"],
  open: async (url) => (await import("./index.js")).openConsul(url),
  guarantees: async () => (await import("./index.js")).consulBackend({ env: {} }).guarantees,
};
