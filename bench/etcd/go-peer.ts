/**
 * The program on etcd's own Go library, where Go and the library are installed
 * (Debian: golang-go, golang-etcd-server-dev). `BENCH_GO` names the go binary
 * and `BENCH_GOPATH` the directory of the library if they lie elsewhere.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const SOURCE = fileURLToPath(new URL("../../../bench/etcd/go/peer.go", import.meta.url));
/** Debian's place for libraries in Go. */
const GOPATH = process.env["BENCH_GOPATH"] ?? "/usr/share/gocode";
const GO = process.env["BENCH_GO"] ?? "go";
/** The library's client, by version: 3.5 and newer, 3.4. */
const CLIENTS = ["go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/clientv3"];

/** The compiled program; `undefined`: there is no Go here, or no library. Compiled once, which takes a minute or two. */
export async function goPeer(): Promise<string | undefined> {
  const client = CLIENTS.find((path) => existsSync(join(GOPATH, "src", path, "concurrency")));
  if (client === undefined || !(await runs(GO))) return undefined;
  const directory = resolve("artifacts", "go-peer");
  const program = join(directory, "peer");
  const source = join(directory, "peer.go");
  mkdirSync(directory, { recursive: true });
  const text = readFileSync(SOURCE, "utf8").replaceAll("CLIENT", client);
  const built = existsSync(program) && existsSync(source) && readFileSync(source, "utf8") === text;
  if (built && statSync(program).mtimeMs >= statSync(source).mtimeMs) return program;
  process.stderr.write("  compiling the Go program; the first time this takes a minute or two\n");
  writeFileSync(source, text);
  const env = { ...process.env, GO111MODULE: "off", GOPATH: resolve(GOPATH), GOFLAGS: "" };
  await run(GO, ["build", "-o", program, source], { env });
  return program;
}

async function runs(program: string): Promise<boolean> {
  return run(program, ["version"]).then(
    () => true,
    () => false,
  );
}
