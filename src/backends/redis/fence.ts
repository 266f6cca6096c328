/**
 * A fence in Redis: the highest token is kept in a key, and a script compares it,
 * raises it and does the write, all in one step. It is as good as the server's
 * memory: a failover that loses the fence's own last write lets one older token
 * through.
 */
import type { Clock } from "../../seam/clock.js";
import type { Bearer, FencedResource, FenceOptions } from "../../seam/fence.js";
import { systemClock } from "../../kit/clock.js";
import { ConclaveError, invalid, StaleLeaderError } from "../../kit/errors.js";
import { bounded } from "../../kit/wait.js";
import { checkToken, parseToken } from "../../kit/token.js";
import { Connection } from "./connection.js";
import { driverOf } from "./drivers.js";
import type { RedisClient } from "./drivers.js";
import { script } from "./scripts.js";
import type { Script } from "./scripts.js";

const DEFAULT_ATTEMPT_MS = 5_000;

/** What a {@link RedisFence} is opened with. */
export interface RedisFenceOptions {
  /** As for `redisBackend`: connections are made from it. */
  readonly client: RedisClient;
  /** The key that holds the highest token. In a cluster it shares a hash tag with the keys that are written: `fence:{orders}`. */
  readonly key: string;
  /** Longest a single request may take. Default 5 s. */
  readonly attemptMs?: number | undefined;
  /** Time and chance. For tests. */
  readonly clock?: Clock | undefined;
}

/** A script of the user's own, with its keys and arguments as in EVAL. */
export interface RedisFencedScript {
  /** Lua. Its KEYS and ARGV are those given here; the fence's own are hidden. */
  readonly script: string;
  readonly keys?: readonly string[];
  readonly args?: readonly (string | number)[];
}

/** What a leader may do in Redis under its token. */
export interface RedisActs {
  check(options?: FenceOptions): Promise<void>;
  /** One command whose first argument is a key: `command("SET", "order:{7}", "paid")`. Resolves with its answer. */
  command(name: string, key: string, ...args: readonly (string | number)[]): Promise<unknown>;
  /** A script, all of it or nothing of it. Resolves with what it returns. */
  eval(script: RedisFencedScript, options?: FenceOptions): Promise<unknown>;
}

/** KEYS[1] the fence, ARGV[1] the token. Tokens have up to 20 digits, more than a Lua number can hold: compared as text. */
const CHECK = `
local seen = redis.call('GET', KEYS[1])
if seen and (#seen > #ARGV[1] or (#seen == #ARGV[1] and seen > ARGV[1])) then return {'stale', seen} end
if seen ~= ARGV[1] then redis.call('SET', KEYS[1], ARGV[1]) end
`;
const ONLY_CHECK = script(`${CHECK}\nreturn {'done'}`);
const COMMAND = script(`${CHECK}\nreturn {'done', redis.call(ARGV[2], KEYS[2], unpack(ARGV, 3))}`);

/** A fence for keys of Redis: the check and the write are one script. */
export class RedisFence implements FencedResource<RedisActs>, AsyncDisposable {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #key: string;
  readonly #attemptMs: number;
  readonly #scripts = new Map<string, Script>();

  constructor(options: RedisFenceOptions) {
    if (options.key === "") throw invalid("key must not be empty: name the key that keeps the highest token");
    this.#clock = options.clock ?? systemClock;
    this.#connection = new Connection(driverOf(options.client), this.#clock);
    this.#key = options.key;
    this.#attemptMs = options.attemptMs ?? DEFAULT_ATTEMPT_MS;
  }

  async check(token: bigint, options: FenceOptions = {}): Promise<void> {
    await this.#run(ONLY_CHECK, token, [], [], options);
  }

  /** One command whose first argument is a key. */
  async command(
    token: bigint,
    name: string,
    key: string,
    ...args: readonly (string | number)[]
  ): Promise<unknown> {
    return this.#run(COMMAND, token, [key], [name, ...args.map(String)], {});
  }

  /** A script of the user's own, carried out only if no newer token has been seen. */
  async eval(
    token: bigint,
    { script: text, keys = [], args = [] }: RedisFencedScript,
    options: FenceOptions = {},
  ): Promise<unknown> {
    return this.#run(this.#wrapped(text), token, keys, args.map(String), options);
  }

  bind(bearer: Bearer): RedisActs {
    return {
      check: async (options) => {
        bearer.assertHeld();
        await this.check(bearer.token, options);
      },
      command: async (name, key, ...args) => {
        bearer.assertHeld();
        return this.command(bearer.token, name, key, ...args);
      },
      eval: async (fenced, options) => {
        bearer.assertHeld();
        return this.eval(bearer.token, fenced, options);
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection.close();
  }

  async #run(
    fenced: Script,
    token: bigint,
    keys: readonly string[],
    args: readonly string[],
    { signal = new AbortController().signal }: FenceOptions,
  ): Promise<unknown> {
    const text = checkToken(token).toString();
    const what = `writing under the fence "${this.#key}"`;
    const answer = await bounded(this.#clock, this.#attemptMs, signal, what, (stop) =>
      this.#connection.run(fenced, [this.#key, ...keys], [text, ...args], { what, signal: stop }),
    );
    return resultOf(answer, token, what);
  }

  /** The user's script as a function with KEYS and ARGV of its own. */
  #wrapped(text: string): Script {
    const known = this.#scripts.get(text);
    if (known !== undefined) return known;
    const made = script(`${CHECK}
local keys, args = {}, {}
for i = 2, #KEYS do keys[i - 1] = KEYS[i] end
for i = 2, #ARGV do args[i - 1] = ARGV[i] end
local act = function(KEYS, ARGV)
${text}
end
return {'done', act(keys, args)}`);
    // Scripts are few and constant; one that is put together anew each time must not fill the memory.
    if (this.#scripts.size > 100) this.#scripts.clear();
    this.#scripts.set(text, made);
    return made;
  }
}

function resultOf(answer: unknown, token: bigint, what: string): unknown {
  const [kind, value]: unknown[] = Array.isArray(answer) ? answer : [];
  if (String(kind) === "done") return value ?? null;
  const highest = parseToken(String(value));
  if (String(kind) === "stale" && highest !== undefined) throw new StaleLeaderError(token, highest);
  throw new ConclaveError(
    "conflict",
    `${what}: the key holds something that is no token; it was left alone: use another key`,
  );
}
