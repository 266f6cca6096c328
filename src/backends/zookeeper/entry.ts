import type { BackendEntry } from "../../seam/entry.js";

export const zookeeper: BackendEntry = {
  name: "zookeeper",
  title: "ZooKeeper",
  schemes: ["zookeeper", "zookeepers"],
  example: "zookeeper://host:2181,host:2181/chroot",
  secrets: ["ZOOKEEPER_AUTH"],
  open: async (url) => (await import("./index.js")).openZooKeeper(url),
  openText: async (url) => (await import("./index.js")).openZooKeeper(url),
  guarantees: async () => (await import("./index.js")).zookeeperBackend({ env: {} }).guarantees,
};
