/** A test's own hand on the API server, apart from the code under test except for reading the kubeconfig. */
import { request } from "node:https";
import { kubeconfigAccess } from "../../../src/backends/kubernetes/kubeconfig.js";

export interface Reply {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into objects of every kind
  readonly body: any;
}

export async function apiCall(
  kubeconfig: string,
  method: string,
  path: string,
  body?: unknown,
  contentType = "application/json",
): Promise<Reply> {
  const access = await kubeconfigAccess({ path: kubeconfig });
  const { authorization, ca, cert, key } = await access.credentials();
  const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const call = request(new URL(path, access.server), {
      method,
      ca,
      cert,
      key,
      agent: false,
      headers: {
        ...(authorization !== undefined && { authorization }),
        ...(text !== undefined && { "content-type": contentType }),
      },
    });
    call.once("error", reject);
    call.once("response", (response) => {
      let answer = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (answer += chunk));
      response.once("end", () => {
        let parsed: unknown = answer;
        try {
          parsed = JSON.parse(answer);
        } catch {
          // plain text
        }
        resolve({ status: response.statusCode ?? 0, body: parsed });
      });
      response.once("error", reject);
    });
    call.setTimeout(10_000, () => call.destroy(new Error("timeout")));
    call.end(text);
  });
}

export const LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

export async function getLease(kubeconfig: string, name: string): Promise<Reply["body"]> {
  const { status, body } = await apiCall(kubeconfig, "GET", `${LEASES}/${name}`);
  return status === 404 ? null : body;
}

/** Changes a Lease as a person with kubectl would: a merge patch without a version. */
export async function patchLease(kubeconfig: string, name: string, patch: unknown): Promise<Reply> {
  return apiCall(kubeconfig, "PATCH", `${LEASES}/${name}`, patch, "application/merge-patch+json");
}
