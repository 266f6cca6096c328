/**
 * The journal of one voter: append-only, one write and one sync for all records
 * that come while the last sync is under way. An error of the disk, or damage
 * that a write cut short cannot explain, ends it for good: a voter that does not
 * know what it promised must not promise again.
 */
import { ConclaveError, describe } from "../../kit/errors.js";
import { decodeJournal, encodeFrame } from "./journal-records.js";
import type { JournalRecord } from "./journal-records.js";

/** What voters and acceptors need of it. */
export interface Journal {
  /** Resolves when the record and all before it are on the disk. Rejects when that is not certain, and then always. */
  append(record: JournalRecord): Promise<void>;
  /** Resolves when all records handed over so far are on the disk. */
  settled(): Promise<void>;
}

/** One file, as the journal sees it. The simulator has another. */
export interface JournalDisk {
  /** All of it; `null` if there is none. */
  load(): Promise<Uint8Array | null>;
  /** Writes after the end; durable when it resolves. Cut short by a crash, it may leave any part of the bytes. */
  append(bytes: Uint8Array): Promise<void>;
  /** Puts another content in place, at once and durably: after a crash there is the old one or the new one. */
  replace(bytes: Uint8Array): Promise<void>;
  /** Rejects if another process has put its own content in place. The look begins after the call. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/** Written anew when it is this long and twice as long as necessary. */
const REWRITE_BYTES = 1024 * 1024;
const RECORDS_IN_A_FRAME = 1_000;

export class DiskJournal implements Journal {
  readonly #disk: JournalDisk;
  readonly #failed: (error: Error) => void;
  #waiting: { readonly record: JournalRecord; done(error?: Error): void }[] = [];
  #writing: Promise<void> | undefined;
  #error: Error | undefined;
  #looking: Promise<void> = Promise.resolve();
  #nextLook: Promise<void> | undefined;
  #bytes = 0;
  /** Length after the last rewriting. */
  #leastBytes = 0;
  #snapshot: (() => readonly JournalRecord[]) | undefined;

  /** `failed`: told once when the disk could not be relied on any more. */
  constructor(disk: JournalDisk, failed: (error: Error) => void = () => {}) {
    this.#disk = disk;
    this.#failed = failed;
  }

  /** Reads what is there and cuts off a write that a crash cut short. Throws if the journal is damaged. */
  async load(): Promise<readonly JournalRecord[]> {
    const bytes = await this.#disk.load();
    if (bytes === null) return [];
    const { records, goodBytes, damaged } = decodeJournal(bytes);
    if (damaged) {
      throw new ConclaveError(
        "conflict",
        "the journal is damaged in the middle: this voter does not know what it promised and takes no part; " +
          "if all other voters are up, stop this one, move its directory away and start it again",
      );
    }
    // Without what a crash cut short; and durably, all of it: after a failed sync the system may show what is not on the disk.
    try {
      await this.#disk.replace(bytes.subarray(0, goodBytes));
    } catch (cause) {
      if (cause instanceof ConclaveError) throw cause;
      throw new ConclaveError(
        "unavailable",
        `the journal could not be written, so this voter does not start: ${describe(cause)}`,
        { cause },
      );
    }
    this.#bytes = goodBytes;
    return records;
  }

  /** From where the whole content can be had; without it the journal only grows. */
  compactFrom(snapshot: () => readonly JournalRecord[]): void {
    this.#snapshot = snapshot;
  }

  append(record: JournalRecord): Promise<void> {
    if (this.#error !== undefined) return Promise.reject(this.#error);
    return new Promise((resolve, reject) => {
      const done = (error?: Error): void => (error === undefined ? resolve() : reject(error));
      this.#waiting.push({ record, done });
      this.#writing ??= this.#write();
    });
  }

  async settled(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    if (this.#error !== undefined) throw this.#error;
  }

  /** Whether {@link settled} would resolve at once. */
  get quiet(): boolean {
    return this.#writing === undefined && this.#error === undefined;
  }

  /**
   * Resolves when the journal was seen, after this call, to be this process's own still.
   * Whoever starts on the same directory keeps quiet for the longest lease that it finds
   * there, counted from the moment at which its file is in place: whatever was acknowledged
   * before that is over by then. All that ask while a look is under way share the next one.
   */
  stillOwn(): Promise<void> {
    this.#nextLook ??= this.#looking.then(() => {
      this.#nextLook = undefined;
      const look = this.#look();
      this.#looking = look.catch(() => {});
      return look;
    });
    return this.#nextLook;
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#looking;
    this.#error ??= new ConclaveError("state", "this journal is closed");
    await this.#disk.close();
  }

  async #look(): Promise<void> {
    if (this.#error !== undefined) throw this.#error;
    try {
      await this.#disk.check();
    } catch (error) {
      // A look that fails because the journal was closed meanwhile is no failure of the disk.
      if (this.#error === undefined) this.#fail(error, []);
      throw error;
    }
  }

  async #write(): Promise<void> {
    // What is handed over in this very turn of the event loop goes with the first.
    await Promise.resolve();
    while (this.#waiting.length > 0 && this.#error === undefined) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#store(batch.map(({ record }) => record));
        for (const { done } of batch) done();
      } catch (error) {
        this.#fail(error, batch);
      }
    }
    this.#writing = undefined;
  }

  async #store(records: readonly JournalRecord[]): Promise<void> {
    const snapshot = this.#snapshot;
    if (snapshot !== undefined && this.#bytes > Math.max(REWRITE_BYTES, 2 * this.#leastBytes)) {
      // Memory is at least as new as these records: who hands one over has changed its memory before.
      const whole = framesOf(snapshot());
      await this.#disk.replace(whole);
      this.#bytes = this.#leastBytes = whole.length;
      return;
    }
    const frame = encodeFrame(records);
    await this.#disk.append(frame);
    this.#bytes += frame.length;
  }

  /** Never tried again: after a failed sync the system may have dropped what it could not write, and say yes the next time. */
  #fail(cause: unknown, batch: readonly { done(error?: Error): void }[]): void {
    const error = new ConclaveError(
      "unavailable",
      `the journal cannot be relied on, so this voter takes no part until it is started again: ${describe(cause)}`,
      { cause, retriable: false },
    );
    this.#error = error;
    for (const { done } of [...batch, ...this.#waiting]) done(error);
    this.#waiting = [];
    this.#failed(error);
  }
}

function framesOf(records: readonly JournalRecord[]): Uint8Array {
  const frames: Uint8Array[] = [];
  for (let at = 0; at < records.length; at += RECORDS_IN_A_FRAME)
    frames.push(encodeFrame(records.slice(at, at + RECORDS_IN_A_FRAME)));
  return Buffer.concat(frames);
}
