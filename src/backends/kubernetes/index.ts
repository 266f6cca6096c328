/**
 * Elections on Kubernetes Leases, by the rules of client-go: Go programs and
 * ours campaign in the same election.
 */
import { hostname } from "node:os";
import type { BackendWithRecords } from "../../seam/backend.js";
import type { Clock } from "../../seam/clock.js";
import { systemClock } from "../../kit/clock.js";
import { invalid } from "../../kit/errors.js";
import type { Access } from "./access.js";
import { KubernetesBackend } from "./backend.js";
import type { KubeConfigLike } from "./kubeconfig-object.js";
import { kubeConfigAccess } from "./kubeconfig-object.js";
import { ApiClient } from "./http.js";
import type { Environment } from "./incluster.js";
import { inClusterAccess, isInCluster } from "./incluster.js";
import { defaultKubeconfig, kubeconfigAccess } from "./kubeconfig.js";
import { checkNamespace } from "./lease.js";
import type { PodName } from "./route.js";
import { PodLabel } from "./route.js";

export { GUARANTEES } from "./backend.js";
export type { KubeConfigLike } from "./kubeconfig-object.js";
export type { Environment } from "./incluster.js";
export { TERM_ANNOTATION } from "./lease.js";
export { LEADER_LABEL } from "./route.js";

/** Which cluster and namespace, and how to talk to it. */
export interface KubernetesOptions {
  /** Where the Leases are. Default: that of the configuration, in a pod its own, else `default`. */
  readonly namespace?: string | undefined;
  /** A `KubeConfig` of `@kubernetes/client-node`, for exec plugins, OIDC and proxies. */
  readonly kubeConfig?: KubeConfigLike | undefined;
  /** Path of a kubeconfig, or a list of them. Default: KUBECONFIG, in a pod its service account, else `~/.kube/config`. */
  readonly kubeconfig?: string | undefined;
  /** A context of the kubeconfig other than its current one. */
  readonly context?: string | undefined;
  /**
   * Labels the leading pod `conclave/leader=<election>`, for a Service to
   * select. `true`: the pod named by POD_NAME (or the host's name) in
   * POD_NAMESPACE. One routed election per pod.
   */
  readonly route?: boolean | { readonly pod: string; readonly namespace?: string } | undefined;
  /** Time and chance. For tests. */
  readonly clock?: Clock | undefined;
  /** Instead of the process's environment. For tests. */
  readonly env?: Environment | undefined;
}

/** Opens a backend. Rejects at once if the configuration cannot be used; the server is first contacted by the first campaign. */
export async function kubernetesBackend(options: KubernetesOptions = {}): Promise<BackendWithRecords> {
  const env = options.env ?? process.env;
  const clock = options.clock ?? systemClock;
  const access = await accessOf(options, env);
  const namespace = checkNamespace(options.namespace ?? access.namespace ?? "default");
  const pod = podOf(options, env, namespace);
  const client = new ApiClient(access, clock);
  return new KubernetesBackend({ client, clock, namespace, label: pod && new PodLabel(client, clock, pod) });
}

/**
 * Opens `kubernetes:///namespace`, with `?context=…` and `?kubeconfig=…` if
 * wanted. No namespace: the default of {@link KubernetesOptions.namespace}.
 */
export async function openKubernetes(url: URL, options: KubernetesOptions = {}): Promise<BackendWithRecords> {
  if (url.protocol !== "kubernetes:")
    throw invalid(`not a Kubernetes URL: it must begin with kubernetes:///`);
  if (url.host !== "" || url.username !== "" || url.password !== "") {
    throw invalid(
      "a Kubernetes URL names no host and no user: write kubernetes:///namespace; the server comes from the kubeconfig or the pod's service account",
    );
  }
  const known = new Set(["context", "kubeconfig", "route"]);
  const unknown = [...url.searchParams.keys()].find((key) => !known.has(key));
  if (unknown !== undefined)
    throw invalid(`unknown parameter "${unknown}" in the Kubernetes URL; known are ${[...known].join(", ")}`);
  const route = url.searchParams.get("route");
  if (route !== null && route !== "true" && route !== "false")
    throw invalid(`route in the Kubernetes URL is true or false, not "${route}"`);
  const namespace = decodeURIComponent(url.pathname.replace(/^\/+/, "").replace(/\/$/, ""));
  return kubernetesBackend({
    ...options,
    namespace: options.namespace ?? (namespace === "" ? undefined : checkNamespace(namespace)),
    context: options.context ?? url.searchParams.get("context") ?? undefined,
    kubeconfig: options.kubeconfig ?? url.searchParams.get("kubeconfig") ?? undefined,
    route: options.route ?? (route === null ? undefined : route === "true"),
  });
}

/** What a candidate in a pod is called: POD_NAME, or the host's name, which is the pod's unless it was set otherwise. */
export function podIdentity(env: Environment = process.env): string {
  const name = env["POD_NAME"] ?? "";
  return name === "" ? hostname() : name;
}

async function accessOf(options: KubernetesOptions, env: Environment): Promise<Access> {
  if (options.kubeConfig !== undefined) return kubeConfigAccess(options.kubeConfig);
  const { kubeconfig, context } = options;
  const named = kubeconfig !== undefined || context !== undefined || (env["KUBECONFIG"] ?? "") !== "";
  if (!named && isInCluster(env)) return inClusterAccess({ env });
  return kubeconfigAccess({ path: kubeconfig ?? defaultKubeconfig(env), context });
}

function podOf({ route }: KubernetesOptions, env: Environment, namespace: string): PodName | undefined {
  if (route === undefined || route === false) return undefined;
  if (route === true) return { name: podIdentity(env), namespace: env["POD_NAMESPACE"] ?? namespace };
  return { name: route.pod, namespace: route.namespace ?? namespace };
}
