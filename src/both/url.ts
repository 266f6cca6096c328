/** `both:?a=URL&b=URL`, each of them percent-encoded: for a fleet that moves and is run by the command line. */
import { invalid } from "../kit/errors.js";

export const BOTH_SCHEME = "both";

/** The URLs of the two stores, in the order of `both(a, b)`. */
export function bothUrls(url: string | URL): readonly [string, string] {
  const query = String(url).replace(/^[^?]*\??/, "");
  const parameters = new URLSearchParams(query);
  const [a, b] = [parameters.get("a"), parameters.get("b")];
  // The text is not repeated: it may hold a password.
  if (!a || !b || [...parameters.keys()].length !== 2)
    throw invalid(
      'a "both:" URL names two stores, percent-encoded: both:?a=URL&b=URL (encodeURIComponent, or jq -rR @uri)',
    );
  if ([a, b].some((each) => each.startsWith(`${BOTH_SCHEME}:`)))
    throw invalid('a "both:" URL names two stores, and none of them can be "both:" itself');
  return [a, b];
}

/** What {@link bothUrls} takes apart. */
export function bothUrl([a = "", b = ""]: readonly string[]): string {
  return `${BOTH_SCHEME}:?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`;
}
