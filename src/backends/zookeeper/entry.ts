import { resolve } from "node:path";
import { withAbsolutePaths } from "../../kit/url-paths.js";
import type { BackendEntry } from "../../seam/entry.js";

export const zookeeper: BackendEntry = {
  name: "zookeeper",
  title: "ZooKeeper",
  schemes: ["zookeeper", "zookeepers"],
  example: "zookeeper://host:2181,host:2181/chroot",
  secrets: ["ZOOKEEPER_AUTH"],
  open: async (url) => (await import("./index.js")).openZooKeeper(url),
  openText: async (url) => (await import("./index.js")).openZooKeeper(url),
  absolute: (url) => withAbsolutePaths(url, ["ca", "cert", "key"], resolve),
  guarantees: async () => (await import("./index.js")).zookeeperBackend({ env: {} }).guarantees,
};
