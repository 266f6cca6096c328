/** Text from elsewhere (a record, a server, a flag) that people will read in a terminal or a log. */

/**
 * Control characters, which steer a terminal; format characters (Unicode Cf),
 * which are invisible or turn the text around; line and paragraph separators;
 * halves of surrogate pairs.
 */
const STEERING = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** The text with such characters written as `\uXXXX`. JSON stays JSON, and means the same. */
export function printable(text: string): string {
  return text.replace(STEERING, (char) =>
    Array.from({ length: char.length }, (_, i) => escaped(char.charCodeAt(i))).join(""),
  );
}

function escaped(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}
