/** Elections on that store: read, write on a version, and close. The engine does the rest. */
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { ConclaveError, recordBackend, registerBackend, textLeases } from "conclave/backend";
import type { Backend, CallOptions, Entry, RecordStore } from "conclave/backend";

interface Answer {
  readonly status: number;
  readonly etag: string;
  /** Of the value, in milliseconds by the store's clock. */
  readonly ageMs: number;
  readonly body: string;
}

class EtagStore implements RecordStore {
  readonly #base: string;
  readonly #agent: Agent;

  constructor(base: string, agent: Agent) {
    this.#base = base;
    this.#agent = agent;
  }

  async read(key: string, { signal }: CallOptions): Promise<Entry | null> {
    const { status, etag, ageMs, body } = await this.#ask("GET", key, {}, "", signal);
    return status === 404 ? null : { version: versionOf(etag), record: body, ageMs };
  }

  async write(
    key: string,
    expected: bigint | null,
    record: string,
    { signal }: CallOptions,
  ): Promise<Entry | null> {
    const guard: Record<string, string> =
      expected === null ? { "if-none-match": "*" } : { "if-match": `"${expected}"` };
    const { status, etag } = await this.#ask("PUT", key, guard, record, signal);
    return status === 412 ? null : { version: versionOf(etag), record };
  }

  /** Both stores share the agent: the backend closes it. */
  async [Symbol.asyncDispose](): Promise<void> {}

  /** Everything but a clear answer is a throw: whether a write happened is then unknown. */
  async #ask(
    method: string,
    key: string,
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal,
  ): Promise<Answer> {
    const url = this.#base + encodeURIComponent(key);
    const asked = new Promise<Answer>((resolve, reject) => {
      const asking = request(url, { method, headers, agent: this.#agent, signal }, (response) => {
        const { statusCode: status = 0, headers: found } = response;
        const known = { status, etag: found.etag ?? "", ageMs: Number(found["x-age-ms"] ?? 0) };
        text(response).then((read) => resolve({ ...known, body: read }), reject);
      });
      asking.on("error", reject).end(body);
    });
    const answer = await asked.catch((cause: unknown) => {
      signal.throwIfAborted();
      throw new ConclaveError("unavailable", "the store cannot be reached; is it running?", { cause });
    });
    if ([200, 404, 412].includes(answer.status)) return answer;
    throw new ConclaveError("unavailable", `the store answered with status ${answer.status}; see its log`);
  }
}

function versionOf(etag: string): bigint {
  const digits = /^"(\d{1,18})"$/.exec(etag)?.[1];
  if (digits === undefined)
    throw new ConclaveError("conflict", "the store answered without a numbered ETag; is it the right one?");
  return BigInt(digits);
}

export function etagBackend(address: string): Backend {
  const agent = new Agent({ keepAlive: true });
  return recordBackend({
    name: "etag",
    guarantees: {
      exclusion: "single-primary",
      expiry: "store",
      token: "record",
      succession: "unordered",
      ttl: { minMs: 500, stepMs: 1 },
    },
    leases: textLeases(new EtagStore(`http://${address}/?key=lease:`, agent)),
    records: new EtagStore(`http://${address}/?key=record:`, agent),
    close: async () => agent.destroy(),
  });
}

registerBackend("etag", (url) => etagBackend(url.host), { example: "etag://host:port" });
