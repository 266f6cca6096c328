/** Elections on that store: read, write on a version, and close. The engine does the rest. */
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import type { Backend, CallOptions, Entry, RecordStore } from "conclave";
import { ConclaveError, recordBackend, textLeases } from "conclave";

interface Answer {
  readonly status: number;
  readonly etag: string;
  readonly body: string;
}

class EtagStore implements RecordStore {
  readonly #base: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(port: number, space: string) {
    this.#base = `http://127.0.0.1:${port}/?key=${space}:`;
  }

  async read(key: string, { signal }: CallOptions): Promise<Entry | null> {
    const { status, etag, body } = await this.#ask("GET", key, {}, "", signal);
    return status === 404 ? null : { version: versionOf(etag), record: body };
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

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
  }

  /** Everything but a clear answer is a throw: whether a write happened is then unknown. */
  async #ask(
    method: string,
    key: string,
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal,
  ): Promise<Answer> {
    let answer: Answer;
    try {
      answer = await new Promise<Answer>((resolve, reject) => {
        const url = this.#base + encodeURIComponent(key);
        const asking = request(url, { method, headers, agent: this.#agent, signal }, (response) => {
          const { statusCode: status = 0, headers } = response;
          text(response).then((read) => resolve({ status, etag: headers.etag ?? "", body: read }), reject);
        });
        asking.on("error", reject).end(body);
      });
    } catch (cause) {
      signal.throwIfAborted();
      throw new ConclaveError("unavailable", "the store cannot be reached; is it running?", { cause });
    }
    if ([200, 404, 412].includes(answer.status)) return answer;
    throw new ConclaveError(
      "unavailable",
      `the store answered with status ${answer.status}; look into its log`,
    );
  }
}

function versionOf(etag: string): bigint {
  const digits = /^"(\d{1,18})"$/.exec(etag)?.[1];
  if (digits === undefined)
    throw new ConclaveError("conflict", "the store answered without a numbered ETag; is it the right one?");
  return BigInt(digits);
}

export function etagBackend(port: number): Backend {
  return recordBackend({
    name: "etag",
    guarantees: {
      exclusion: "single-primary",
      expiry: "observer",
      token: "record",
      succession: "unordered",
      ttl: { minMs: 500, stepMs: 1 },
    },
    leases: textLeases(new EtagStore(port, "lease")),
    records: new EtagStore(port, "record"),
  });
}
