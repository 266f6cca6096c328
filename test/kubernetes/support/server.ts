/**
 * A real API server for the tests, from the first of these that is there:
 *
 *   KUBECONFIG            a cluster that runs already (a scratch one: Leases are written)
 *   KUBEBUILDER_ASSETS    a folder with kube-apiserver and etcd (the convention of envtest)
 *   CONCLAVE_SHARED       a folder whose kubernetes/up starts both; default ../shared
 *
 * None of them: the tests say so and are skipped, unless CONCLAVE_REQUIRE names
 * `kubernetes`; then absence is a failure.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { startAssets } from "./assets.js";

export interface Server {
  /** May do everything. */
  readonly admin: string;
  /** May get, list, watch, create and update Leases in the namespace `default`, nothing else. */
  readonly elector: string;
  /** A client certificate that may do everything, where there is one. */
  readonly cert: string | undefined;
  /** The Go peer, where there is one. */
  readonly candidate: string | undefined;
  /** Process ids of the API server and its etcd, where they are ours to stop. */
  readonly pids: { readonly apiserver: number; readonly etcd: number } | undefined;
  stop(): void;
}

type Source =
  | { readonly kind: "kubeconfig"; readonly path: string }
  | { readonly kind: "assets"; readonly folder: string }
  | { readonly kind: "shared"; readonly folder: string };

export const required = (process.env["CONCLAVE_REQUIRE"] ?? "")
  .split(",")
  .map((name) => name.trim())
  .includes("kubernetes");

export const NOT_RUN =
  "The Kubernetes tests were NOT run: there is no API server. Set KUBECONFIG to a scratch cluster, or KUBEBUILDER_ASSETS " +
  "to a folder with kube-apiserver and etcd (setup-envtest makes one), or CONCLAVE_SHARED to a folder with kubernetes/up.";

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function inPath(command: string): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((folder) => executable(join(folder, command)));
}

function findSource(): Source | undefined {
  const kubeconfig = process.env["KUBECONFIG"] ?? "";
  if (kubeconfig !== "") return { kind: "kubeconfig", path: kubeconfig };
  const assets = process.env["KUBEBUILDER_ASSETS"] ?? "";
  if (assets !== "") return { kind: "assets", folder: assets };
  const shared = resolve(process.env["CONCLAVE_SHARED"] ?? "../shared", "kubernetes");
  const tools = ["etcd", "openssl", "curl", "xz", "python3"];
  if (executable(join(shared, "up")) && tools.every(inPath)) return { kind: "shared", folder: shared };
  return undefined;
}

export const source = findSource();

export async function startServer(): Promise<Server> {
  if (source === undefined)
    throw new Error(required ? `CONCLAVE_REQUIRE names kubernetes. ${NOT_RUN}` : NOT_RUN);
  if (source.kind === "kubeconfig") {
    const { path } = source;
    return {
      admin: path,
      elector: path,
      cert: undefined,
      candidate: goCandidate(),
      pids: undefined,
      stop: () => {},
    };
  }
  if (source.kind === "assets") return startAssets(source.folder);
  return startShared(source.folder);
}

function goCandidate(): string | undefined {
  const named = process.env["CLIENT_GO_CANDIDATE"] ?? "";
  return named !== "" && existsSync(named) ? named : undefined;
}

function startShared(folder: string): Server {
  const directory = mkdtempSync(join(tmpdir(), "conclave-k8s-"));
  const up = spawnSync(join(folder, "up"), [directory], { encoding: "utf8", timeout: 90_000 });
  if (up.status !== 0) {
    rmSync(directory, { recursive: true, force: true });
    throw new Error(`the API server did not start: ${up.stderr || String(up.error ?? up.stdout)}`);
  }
  const pid = (name: string): number => Number(readFileSync(join(directory, `${name}.pid`), "utf8"));
  return {
    admin: join(directory, "admin.kubeconfig"),
    elector: join(directory, "elector.kubeconfig"),
    cert: join(directory, "cert.kubeconfig"),
    candidate: join(directory, "client-go-candidate"),
    pids: { apiserver: pid("apiserver"), etcd: pid("etcd") },
    stop: () => {
      spawnSync(join(folder, "down"), [directory], { timeout: 50_000 });
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
