import { resolve } from "node:path";
import { withAbsolutePaths } from "../../kit/url-paths.js";
import type { BackendEntry } from "../../seam/entry.js";

export const etcd: BackendEntry = {
  name: "etcd",
  title: "etcd",
  schemes: ["etcd", "etcds"],
  example: "etcd://host:2379,host:2379/prefix",
  // Variables that only name a file or an address are no secrets.
  secrets: ["ETCD_USERNAME", "ETCD_PASSWORD"],
  open: async (url) => (await import("./index.js")).openEtcd(url),
  openText: async (url) => (await import("./index.js")).openEtcd(url),
  absolute: (url) => withAbsolutePaths(url, ["ca", "cert", "key"], resolve),
  guarantees: async () => (await import("./index.js")).etcdBackend({ env: {} }).guarantees,
};
