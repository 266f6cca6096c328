/** Which Consul the tests run: CONSUL_BIN, or the one on the PATH (`scripts/servers/consul` finds others). */
import { spawnSync } from "node:child_process";

export function consulCommand(): string {
  return process.env["CONSUL_BIN"] || "consul";
}

/** Whether it is there. One that was asked for by CONSUL_BIN must be: its tests are not skipped. */
export function hasConsul(): boolean {
  const there = spawnSync(consulCommand(), ["version"], { stdio: "ignore" }).status === 0;
  if (!there && process.env["CONSUL_BIN"]) throw new Error(`CONSUL_BIN: ${consulCommand()} cannot be run`);
  if (!there)
    process.stderr.write(
      "Consul is not tested: set CONSUL_BIN, or put consul on the PATH (scripts/servers/consul says where it looks)\n",
    );
  return there;
}
