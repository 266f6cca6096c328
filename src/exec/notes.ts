/**
 * The wrapper's own lines, on stderr: stdout belongs to the command. Written by
 * a thread of their own, because the command shares the pipe and may have
 * filled it; a wrapper that waited there could not renew.
 */
import { write } from "node:fs";
import { isatty } from "node:tty";
import type { Log, LogFormat } from "../terminal/log.js";
import { openLog } from "../terminal/log.js";
import type { Out } from "../terminal/output.js";
import { render, takesColour } from "../terminal/output.js";

export type NoteFormat = LogFormat | "none";

const STDERR = 2;
/** Beyond this many queued lines, drop: nobody is reading stderr. */
const MOST_WAITING = 1_000;
const AGAIN_MS = 20;

export interface Notes extends Log {
  /** Waits until all is written, but not for a reader that does not read. */
  flush(limitMs: number): Promise<void>;
}

export function openNotes(format: NoteFormat, id: string, self: string): Notes {
  const lines = new Lines();
  const colour = isatty(STDERR) && takesColour();
  const out: Out = { line: (...parts) => lines.add(`${render(parts, colour)}\n`) };
  const log: Log =
    format === "none" ? { line: () => {}, status: () => {}, note: () => {} } : openLog(format, out, id, self);
  return {
    ...log,
    // Marks our own lines among those of the command.
    note: (text) => log.note(`conclave: ${text}`),
    flush: (limitMs) => lines.flush(limitMs),
  };
}

class Lines {
  #waiting: string[] = [];
  #writing: Promise<void> | undefined;

  add(text: string): void {
    if (this.#waiting.length < MOST_WAITING) this.#waiting.push(text);
    this.#writing ??= this.#write().finally(() => (this.#writing = undefined));
  }

  async flush(limitMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, limitMs)));
    await Promise.race([this.#writing, late]);
    clearTimeout(timer);
  }

  async #write(): Promise<void> {
    for (let text = this.#waiting.shift(); text !== undefined; text = this.#waiting.shift()) {
      let rest = Buffer.from(text);
      while (rest.length > 0) {
        const written = await writeSome(rest);
        if (written === "broken") return;
        rest = rest.subarray(written);
      }
    }
  }
}

function writeSome(bytes: Buffer): Promise<number | "broken"> {
  return new Promise((resolve) => {
    write(STDERR, bytes, (error, written) => {
      if (error === null) resolve(written);
      else if (error.code === "EAGAIN") setTimeout(() => resolve(0), AGAIN_MS);
      else resolve("broken");
    });
  });
}
