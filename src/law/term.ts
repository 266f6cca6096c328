/** The view of a term that its leader is given: it reads the state machine behind it (`Tenure`) and shows nothing else of it. */
import { NotLeaderError } from "../kit/errors.js";
import type { Fence, FencedResource, Guard } from "../seam/fence.js";
import type { Term, TermEnd, TransferOptions, TransferResult } from "../api/term.js";
import { checkValue } from "../kit/names.js";

type Shown = "token" | "since" | "value" | "remainingMs" | "lastedMs" | "signal" | "ended";

/** What a term shows; the state machine behind it (`Tenure`) has more. */
interface TermState extends Pick<Term, Shown | "proclaim" | "resign" | "transfer"> {
  readonly context: Pick<Term, "election" | "candidate">;
  readonly over: TermEnd | undefined;
}

export function termOver(token: bigint, election: string, why: string): NotLeaderError {
  return new NotLeaderError(token, `term ${token} of election "${election}" is over: ${why}`);
}

export function termOf(state: TermState): Term {
  return new TermView(state);
}

class TermView implements Term {
  readonly #state: TermState;

  constructor(state: TermState) {
    this.#state = state;
  }

  get election(): string {
    return this.#state.context.election;
  }

  get candidate(): string {
    return this.#state.context.candidate;
  }

  get token(): bigint {
    return this.#state.token;
  }

  get since(): number {
    return this.#state.since;
  }

  get value(): string {
    return this.#state.value;
  }

  get held(): boolean {
    return this.#state.remainingMs > 0;
  }

  get remainingMs(): number {
    return this.#state.remainingMs;
  }

  get lastedMs(): number {
    return this.#state.lastedMs;
  }

  get signal(): AbortSignal {
    return this.#state.signal;
  }

  get end(): TermEnd | undefined {
    return this.#state.over;
  }

  get ended(): Promise<TermEnd> {
    return this.#state.ended;
  }

  assertHeld(): void {
    if (this.held) return;
    const why = this.end?.detail ?? "it is not held";
    throw termOver(this.token, this.election, `${why}; stop its work`);
  }

  guard<Acts>(resource: FencedResource<Acts>): Acts;
  guard(fence: Fence): Guard;
  guard<Acts>(fence: Fence | FencedResource<Acts>): Guard | Acts {
    if ("bind" in fence) return fence.bind(this);
    return {
      check: async (options) => {
        this.assertHeld();
        await fence.check(this.token, options);
      },
    };
  }

  async proclaim(value: string): Promise<void> {
    checkValue(value);
    this.assertHeld();
    await this.#state.proclaim(value);
  }

  resign(): Promise<void> {
    return this.#state.resign();
  }

  async transfer(to: string, options?: TransferOptions): Promise<TransferResult> {
    this.assertHeld();
    return this.#state.transfer(to, options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#state.resign();
  }
}
