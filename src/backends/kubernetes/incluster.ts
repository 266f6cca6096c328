/** A pod's own access: the service account that Kubernetes mounts into it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ConclaveError, describe } from "../../kit/errors.js";
import type { Access } from "./access.js";

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

export interface InClusterOptions {
  readonly env?: Environment;
  /** Where token, ca.crt and namespace are mounted. */
  readonly directory?: string;
}

/** Whether this process runs in a pod that may know its API server. */
export function isInCluster(env: Environment = process.env): boolean {
  return (env["KUBERNETES_SERVICE_HOST"] ?? "") !== "" && (env["KUBERNETES_SERVICE_PORT"] ?? "") !== "";
}

export async function inClusterAccess(options: InClusterOptions = {}): Promise<Access> {
  const env = options.env ?? process.env;
  const directory = options.directory ?? SERVICE_ACCOUNT;
  const host = env["KUBERNETES_SERVICE_HOST"] ?? "";
  const port = env["KUBERNETES_SERVICE_PORT"] ?? "";
  if (!isInCluster(env)) {
    throw new ConclaveError(
      "unsupported",
      "this process is not in a Kubernetes pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set); name a kubeconfig instead",
    );
  }
  const server = new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`);
  const ca = await mounted(directory, "ca.crt");
  const namespace = (await mounted(directory, "namespace").catch(() => "")).trim();
  return {
    origin: "in-cluster",
    server,
    namespace: namespace === "" ? undefined : namespace,
    // Read before every request: the kubelet replaces the token well before it runs out.
    credentials: async () => ({ authorization: `Bearer ${(await mounted(directory, "token")).trim()}`, ca }),
    refresh: () => Promise.resolve(),
  };
}

async function mounted(directory: string, name: string): Promise<string> {
  const path = join(directory, name);
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new ConclaveError(
      "unsupported",
      `cannot read ${path}: ${describe(error)}; the pod needs a service account (automountServiceAccountToken: true)`,
      { cause: error, retriable: true },
    );
  }
}
