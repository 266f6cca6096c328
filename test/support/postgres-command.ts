/** Where PostgreSQL's programs are: Debian keeps them apart from the PATH, one folder a version. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const DEBIAN = "/usr/lib/postgresql";

function folder(): string | undefined {
  const named = process.env["CONCLAVE_POSTGRES_BIN"] ?? "";
  if (named !== "") return named;
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN) : [];
  const newest = versions.map(Number).sort((a, b) => b - a)[0];
  return newest === undefined ? undefined : join(DEBIAN, String(newest), "bin");
}

export function postgresCommand(name: "initdb" | "postgres" | "pg_ctl" | "pg_basebackup"): string {
  return join(folder() ?? "", name);
}

/** One that was asked for by CONCLAVE_POSTGRES_BIN or CONCLAVE_REQUIRE must be there: its tests are not skipped. */
export function hasPostgres(): boolean {
  const there = folder() !== undefined && runs(postgresCommand("postgres"), "--version");
  const required = (process.env["CONCLAVE_REQUIRE"] ?? "").split(",").includes("postgres");
  return there || required;
}

function runs(command: string, flag: string): boolean {
  return spawnSync(command, [flag], { stdio: "ignore" }).status === 0;
}

/** The server refuses to run as root: then it runs as the user of Debian's package. */
export function serverUser(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string): number =>
    Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout);
  return { uid: id("-u"), gid: id("-g") };
}

/** In sbin, which is not on every user's PATH. */
export const PGBOUNCER = "/usr/sbin/pgbouncer";

export function hasPgbouncer(): boolean {
  return runs(PGBOUNCER, "--version");
}
