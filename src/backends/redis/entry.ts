import { resolve } from "node:path";
import { withAbsolutePaths } from "../../kit/url-paths.js";
import type { BackendEntry } from "../../seam/entry.js";

export const redis: BackendEntry = {
  name: "redis",
  title: "Redis, Valkey",
  schemes: ["redis", "rediss"],
  example: "redis://host:6379/0",
  secrets: ["REDIS_USERNAME", "REDIS_PASSWORD", "REDIS_SENTINEL_PASSWORD"],
  open: async (url) => (await import("./index.js")).openRedis(url),
  openText: async (url) => (await import("./index.js")).openRedis(url),
  absolute: (url) => withAbsolutePaths(url, ["ca", "cert", "key"], resolve),
  guarantees: async () => (await import("./index.js")).GUARANTEES,
};
