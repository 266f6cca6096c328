/**
 * Routing to the leader: the leading pod carries `conclave/leader=<election>`,
 * so that a Service can select it. The label follows leadership; it does not
 * make it. It is put on after the grant and taken off before the release.
 */
import type { Clock } from "../../seam/clock.js";
import { ConclaveError, invalid } from "../../kit/errors.js";
import { bounded, sleep } from "../../kit/wait.js";
import { failure, refusalOf } from "./failures.js";
import type { Api } from "./http.js";

/** The label that the leading pod carries. */
export const LEADER_LABEL = "conclave/leader";
const POINTER = `/metadata/labels/${LEADER_LABEL.replace("/", "~1")}`;
/** One patch may take this long; failed ones are tried again after a pause while the term lasts. */
const PATCH_MS = 5_000;
const PAUSE_MS = 1_000;

export interface PodName {
  readonly namespace: string;
  readonly name: string;
}

export class PodLabel {
  readonly #client: Api;
  readonly #clock: Clock;
  readonly #pod: PodName;

  constructor(client: Api, clock: Clock, pod: PodName) {
    this.#client = client;
    this.#clock = clock;
    this.#pod = pod;
  }

  /**
   * Takes the label off if it names this election. Throws if the pod cannot be
   * patched: called before campaigning, this shows missing rights before anyone
   * relies on the route.
   */
  async remove(election: string, signal: AbortSignal): Promise<void> {
    const patch = [
      { op: "test", path: POINTER, value: checkLabel(election) },
      { op: "remove", path: POINTER },
    ];
    const { status, body } = await this.#patch(patch, "application/json-patch+json", signal);
    if (status < 300 || status === 422) return; // 422: the test failed, the label is not there or not ours
    throw this.#refused(status, body);
  }

  /** Puts the label on, trying until it is on or the term ends. */
  async add(election: string, signal: AbortSignal): Promise<void> {
    const patch = { metadata: { labels: { [LEADER_LABEL]: checkLabel(election) } } };
    while (!signal.aborted) {
      try {
        const { status } = await this.#patch(patch, "application/merge-patch+json", signal);
        if (status < 300) return;
      } catch {
        // The label is late, but leadership does not depend on it: try again.
      }
      await sleep(this.#clock, PAUSE_MS * (0.5 + this.#clock.random()), signal);
    }
  }

  #patch(body: unknown, contentType: string, signal: AbortSignal): Promise<{ status: number; body: string }> {
    const { namespace, name } = this.#pod;
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
    const what = this.#what();
    return bounded(this.#clock, PATCH_MS, signal, what, (s) =>
      this.#client.json({ method: "PATCH", path, body, contentType, what }, s),
    );
  }

  #what(): string {
    return `labelling pod ${this.#pod.namespace}/${this.#pod.name}`;
  }

  #refused(status: number, body: string): ConclaveError {
    if (status !== 404) return failure(this.#what(), refusalOf(status, body));
    return invalid(
      `${this.#what()}: there is no such pod; set POD_NAME and POD_NAMESPACE from the downward API, or name the pod in the route option`,
    );
  }
}

/** The election's name becomes a label value: at most 63 characters. */
export function checkLabel(election: string): string {
  if (election.length <= 63) return election;
  throw invalid(
    `"${election}" is too long for a label value (63 characters), which routing to the leader needs`,
  );
}
