import type { BackendEntry } from "../../seam/entry.js";

export const redis: BackendEntry = {
  name: "redis",
  title: "Redis, Valkey",
  schemes: ["redis", "rediss"],
  example: "redis://host:6379/0",
  secrets: ["REDIS_USERNAME", "REDIS_PASSWORD", "REDIS_SENTINEL_PASSWORD"],
  open: async (url) => (await import("./index.js")).openRedis(url),
  openText: async (url) => (await import("./index.js")).openRedis(url),
  guarantees: async () => (await import("./index.js")).GUARANTEES,
};
