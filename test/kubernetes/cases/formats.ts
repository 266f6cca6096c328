/** A rolling update: candidates of today beside candidates that write a later format of our annotation. */
import { expect, it } from "vitest";
import { kubernetesBackend } from "../../../src/backends/kubernetes/index.js";
import { Election } from "../../../src/election/election.js";
import { apiCall, getLease, LEASES } from "../support/api.js";
import type { Server } from "../support/server.js";

const TIMING = { ttlMs: 3000, renewDeadlineMs: 2000, renewMs: 500, retryMs: 500 };

/** Holds a Lease by hand, as a candidate of tomorrow might: same Lease, an annotation nobody here can read. */
class Tomorrow {
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<void> | undefined;
  #acquired = "";

  constructor(
    readonly server: Server,
    readonly name: string,
  ) {}

  async acquire(): Promise<void> {
    this.#acquired = now();
    const old = await getLease(this.server.admin, this.name);
    const spec = {
      holderIdentity: "tomorrow",
      leaseDurationSeconds: 3,
      acquireTime: this.#acquired,
      renewTime: this.#acquired,
    };
    if (old === null) {
      await this.#ok("POST", LEASES, {
        metadata: { name: this.name, annotations: this.#term() },
        spec: { ...spec, leaseTransitions: 0 },
      });
    } else {
      expect(old.spec.holderIdentity).toBe("");
      const annotations = { ...old.metadata.annotations, ...this.#term() };
      const leaseTransitions = old.spec.leaseTransitions + 1;
      await this.#ok("PUT", `${LEASES}/${this.name}`, {
        ...old,
        metadata: { ...old.metadata, annotations },
        spec: { ...spec, leaseTransitions },
      });
    }
    this.#timer = setInterval(() => (this.#renewing = this.#renew()), 500);
  }

  async release(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewing;
    const old = await getLease(this.server.admin, this.name);
    await this.#ok("PUT", `${LEASES}/${this.name}`, {
      ...old,
      spec: { ...old.spec, holderIdentity: "", leaseDurationSeconds: 1, renewTime: now() },
    });
  }

  async #renew(): Promise<void> {
    const old = await getLease(this.server.admin, this.name);
    if (old.spec.holderIdentity !== "tomorrow") return;
    await apiCall(this.server.admin, "PUT", `${LEASES}/${this.name}`, {
      ...old,
      spec: { ...old.spec, renewTime: now() },
    });
  }

  #term(): Record<string, string> {
    return {
      "conclave/term": JSON.stringify({
        v: 2,
        leader: { id: "tomorrow", since: this.#acquired },
        fence: ["x", 7],
      }),
    };
  }

  async #ok(method: string, path: string, body: unknown): Promise<void> {
    const answer = await apiCall(this.server.admin, method, path, body);
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300);
  }
}

function now(): string {
  return new Date().toISOString().replace("Z", "000Z");
}

export function formatCases(server: () => Server): void {
  it("leadership goes from today's format to tomorrow's and back, and nobody takes it from a leader he cannot read", async () => {
    const name = `formats-${process.pid}`;
    const tomorrow = new Tomorrow(server(), name);
    await using today = new Election({
      name,
      backend: await kubernetesBackend({ kubeconfig: server().elector }),
      ...TIMING,
      closeBackend: true,
    });
    await tomorrow.acquire();
    const leader = await today.leader();
    expect(leader).toMatchObject({ candidate: "tomorrow", value: "" });
    const waiting = today.campaign();
    await new Promise((resolve) => setTimeout(resolve, 4000)); // longer than the lease: it is renewed, so it is respected
    expect(today.leading).toBe(false);
    await tomorrow.release();
    const term = await waiting;
    expect(term.token > (leader?.token ?? 0n)).toBe(true);
    const lease = await getLease(server().admin, name);
    expect(JSON.parse(lease.metadata.annotations["conclave/term"])).toMatchObject({
      v: 1,
      holder: today.candidate,
    });
    expect(lease.spec.leaseTransitions).toBe(1);
    await term.resign();
    await tomorrow.acquire();
    const again = await today.leader();
    expect(again).toMatchObject({ candidate: "tomorrow" });
    expect((again?.token ?? 0n) > term.token).toBe(true);
    await tomorrow.release();
  });
}
