/**
 * Which etcd the tests run: the one on the PATH, or the one in the directory that CONCLAVE_ETCD_BIN names
 * (`scripts/servers/etcd` unpacks another version).
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";

export function etcdCommand(name: "etcd" | "etcdctl"): string {
  const directory = process.env["CONCLAVE_ETCD_BIN"] ?? "";
  return directory === "" ? name : join(directory, name);
}

/** Whether etcd and etcdctl are there. One that was asked for by CONCLAVE_ETCD_BIN must be: its tests are not skipped. */
export function hasEtcd(): boolean {
  const missing = (["etcd", "etcdctl"] as const).filter(
    (name) => spawnSync(etcdCommand(name), ["--help"], { stdio: "ignore" }).status !== 0,
  );
  if (missing.length > 0 && etcdCommand("etcd") !== "etcd") {
    throw new Error(`CONCLAVE_ETCD_BIN: ${missing.map(etcdCommand).join(" and ")} cannot be run`);
  }
  return missing.length === 0;
}
