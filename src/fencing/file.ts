/**
 * A file that only the newest leader can append to or replace. It is a
 * directory of segments (see segments.ts); {@link FencedFile.read} puts them
 * together. On one machine's file system; on a network file system it is as
 * good as that system's `link`.
 */
import type { Clock } from "../seam/clock.js";
import { systemClock } from "../kit/clock.js";
import { ConclaveError, invalid } from "../kit/errors.js";
import type { Bearer, FencedResource, FenceOptions } from "../seam/fence.js";
import type { Segment } from "./segments.js";
import { Segments } from "./segments.js";
import { assertFresh, checkToken } from "../kit/token.js";

/** Where a {@link FencedFile} is kept. */
export interface FencedFileOptions {
  /** A directory of its own. It is created if it is missing, its parent is not. */
  readonly path: string;
  readonly clock?: Clock | undefined;
}

/** What a leader may do to a {@link FencedFile} under its token. */
export interface FileActs {
  check(options?: FenceOptions): Promise<void>;
  append(data: string | Uint8Array, options?: FenceOptions): Promise<void>;
  replace(data: string | Uint8Array, options?: FenceOptions): Promise<void>;
}

/** Longer chains are joined by the next append, so that reading stays cheap. */
const LONGEST_CHAIN = 256;

/** A file that refuses writes of earlier leaders. */
export class FencedFile implements FencedResource<FileActs> {
  readonly path: string;
  readonly #segments: Segments;

  constructor(options: FencedFileOptions) {
    if (typeof options.path !== "string" || options.path === "") throw invalid("path must name a directory");
    this.path = options.path;
    this.#segments = new Segments(options.path, options.clock ?? systemClock);
  }

  /** Remembers a newer token by an empty append. */
  async check(token: bigint, options: FenceOptions = {}): Promise<void> {
    checkToken(token);
    const newest = await this.#segments.newest();
    assertFresh(token, newest?.token ?? null);
    if (newest?.token !== token) await this.append(token, "", options);
  }

  /** Adds to the end. On disk when it resolves. */
  async append(token: bigint, data: string | Uint8Array, options: FenceOptions = {}): Promise<void> {
    await this.#commit(token, options, async (newest) => {
      if (newest === null) return { base: 1, data: bytes(data) };
      if (newest.number - newest.base < LONGEST_CHAIN) return { base: newest.base, data: bytes(data) };
      const before = await this.#content(newest);
      return before && { base: newest.number + 1, data: Buffer.concat([before, bytes(data)]) };
    });
  }

  /** Puts new content in the place of the old. On disk when it resolves. */
  async replace(token: bigint, data: string | Uint8Array, options: FenceOptions = {}): Promise<void> {
    await this.#commit(token, options, async (newest) => ({
      base: (newest?.number ?? 0) + 1,
      data: bytes(data),
    }));
  }

  /** The content, whole, as of one write; `null` = nothing was written yet. */
  async read(): Promise<{ readonly token: bigint; readonly data: Buffer } | null> {
    for (let before: Segment | null = null; ;) {
      const newest = await this.#segments.newest();
      if (newest === null) return null;
      const data = await this.#content(newest);
      if (data !== null) return { token: newest.token, data };
      this.#assertMoved(before, newest);
      before = newest;
    }
  }

  bind(bearer: Bearer): FileActs {
    const act =
      <A extends unknown[]>(call: (token: bigint, ...args: A) => Promise<void>) =>
      async (...args: A): Promise<void> => {
        bearer.assertHeld();
        await call.call(this, bearer.token, ...args);
      };
    return { check: act(this.check), append: act(this.append), replace: act(this.replace) };
  }

  async #commit(
    token: bigint,
    { signal }: FenceOptions,
    make: (newest: Segment | null) => Promise<{ base: number; data: Uint8Array } | null>,
  ): Promise<void> {
    checkToken(token);
    for (let before: Segment | null = null; ;) {
      signal?.throwIfAborted();
      const newest = await this.#segments.newest();
      assertFresh(token, newest?.token ?? null);
      const next = await make(newest);
      if (next === null) this.#assertMoved(before, newest);
      else if (await this.#segments.add(newest, { token, base: next.base }, next.data)) return;
      else continue;
      before = newest;
    }
  }

  /** Content is only ever removed after a newer replacement was written: if there is none, it was lost in some other way. */
  #assertMoved(before: Segment | null, newest: Segment | null): void {
    if (before === null || before.id !== newest?.id) return;
    throw new ConclaveError(
      "conflict",
      `${this.path} lacks a segment between ${newest.base} and ${newest.number}; restore it, or replace the content`,
    );
  }

  /** `null` = a replacement came in between and removed what we were reading. */
  async #content(newest: Segment): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    for (let number = newest.base; number < newest.number; number++) {
      const segment = await this.#segments.read(number);
      if (segment === null) return null;
      parts.push(segment.data);
    }
    return Buffer.concat([...parts, newest.data]);
  }
}

function bytes(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? Buffer.from(data) : data;
}
