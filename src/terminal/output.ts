/** Where lines go. Everything that is printed passes here, so that text from others cannot steer a terminal. */
import { printable } from "../kit/printable.js";

export interface Out {
  line(...parts: readonly Part[]): void;
}

/** A piece of a line, plain or in a colour. */
export type Part = string | { readonly colour: Colour; readonly text: string };

export type Colour = "red" | "green" | "yellow" | "blue" | "magenta" | "cyan" | "grey" | "bold";

const CODES: Readonly<Record<Colour, number>> = {
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  magenta: 35,
  cyan: 36,
  grey: 90,
  bold: 1,
};

/** Beyond this many queued bytes, drop: nobody is reading (a stopped pager), and memory would fill up. */
const MOST_UNREAD_BYTES = 4 * 1024 * 1024;

/** What of a stream is needed. */
interface Sink {
  readonly isTTY?: boolean;
  readonly writableLength: number;
  write(text: string): boolean;
}

export function output(stream: Sink = process.stdout): Out {
  const colour = stream.isTTY === true && takesColour();
  return {
    line: (...parts) => {
      if (stream.writableLength < MOST_UNREAD_BYTES) stream.write(`${render(parts, colour)}\n`);
    },
  };
}

/** Whether a terminal wants colour, by the environment. */
export function takesColour(): boolean {
  return (process.env["NO_COLOR"] ?? "") === "" && !isDumb();
}

/** A terminal that understands no control sequences at all. */
export function isDumb(): boolean {
  return process.env["TERM"] === "dumb";
}

export function render(parts: readonly Part[], colour: boolean): string {
  return parts
    .map((part) => {
      if (typeof part === "string") return printable(part);
      const text = printable(part.text);
      return colour ? `\u001b[${CODES[part.colour]}m${text}\u001b[0m` : text;
    })
    .join("");
}

/** `13:02:11`, or with milliseconds `13:02:11.042`, in local time. */
export function clockTime(at: number, millis = true): string {
  const date = new Date(at);
  const pad = (value: number, width = 2): string => String(value).padStart(width, "0");
  const seconds = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return millis ? `${seconds}.${pad(date.getMilliseconds(), 3)}` : seconds;
}
