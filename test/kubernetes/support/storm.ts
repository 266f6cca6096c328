/** Someone who edits a label of one Lease many times a second, over a connection that stays open. */
import { Agent, request } from "node:https";
import { kubeconfigAccess } from "../../../src/backends/kubernetes/kubeconfig.js";
import { LEASES } from "./api.js";

export interface Storm {
  /** Edits that the server has confirmed. */
  readonly edits: () => number;
  stop(): Promise<void>;
}

/** `perSecond` edits, as long as the server keeps up: no more than a few are under way at once. */
export async function labelStorm(kubeconfig: string, name: string, perSecond: number): Promise<Storm> {
  const access = await kubeconfigAccess({ path: kubeconfig });
  const { authorization, ca, cert, key } = await access.credentials();
  const agent = new Agent({ keepAlive: true });
  const underWay = new Set<Promise<void>>();
  let edits = 0;
  let sent = 0;
  const edit = (): Promise<void> =>
    new Promise((resolve) => {
      const call = request(new URL(`${LEASES}/${name}`, access.server), {
        method: "PATCH",
        ca,
        cert,
        key,
        agent,
        headers: {
          ...(authorization !== undefined && { authorization }),
          "content-type": "application/merge-patch+json",
        },
      });
      call.once("error", () => resolve());
      call.once("response", (response) => {
        response.resume();
        if (response.statusCode === 200) edits++;
        response.once("close", () => resolve());
      });
      call.end(JSON.stringify({ metadata: { labels: { edit: String(sent++) } } }));
    });
  const startedAt = performance.now();
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) * perSecond) / 1000;
    for (let missing = due - sent; missing > 0 && underWay.size < 4; missing--) {
      const running = edit().finally(() => underWay.delete(running));
      underWay.add(running);
    }
  }, 5);
  return {
    edits: () => edits,
    stop: async () => {
      clearInterval(timer);
      await Promise.all(underWay);
      agent.destroy();
    },
  };
}
