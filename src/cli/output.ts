/** Where lines go. Everything that is printed passes here, so that secrets are struck out in one place. */
import { redact } from "./secrets.js";

export interface Out {
  line(text: string): void;
  readonly colour: boolean;
}

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

export function output(stream: NodeJS.WriteStream = process.stdout): Out {
  const { NO_COLOR, TERM } = process.env;
  const plain = (NO_COLOR !== undefined && NO_COLOR !== "") || TERM === "dumb";
  return {
    line: (text) => void stream.write(`${redact(text)}\n`),
    colour: stream.isTTY && !plain,
  };
}

export function paint(out: Out, colour: Colour, text: string): string {
  return out.colour ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text;
}

/** Characters that could steer a terminal, or turn text around. */
// oxlint-disable-next-line no-control-regex -- control characters are what we look for
const STEERING = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Text from elsewhere (a record, a URL, a flag), harmless to a terminal. Inside JSON it stays JSON. */
export function printable(text: string): string {
  return text.replace(STEERING, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** `13:02:11`, or with milliseconds `13:02:11.042`, in local time. */
export function clockTime(at: number, millis = true): string {
  const date = new Date(at);
  const pad = (value: number, width = 2): string => String(value).padStart(width, "0");
  const seconds = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return millis ? `${seconds}.${pad(date.getMilliseconds(), 3)}` : seconds;
}
