/**
 * Credentials that others send back. A server or a proxy may quote the request
 * it refused, and its text ends up in an error message.
 */

export const MASK = "***";
/** Shorter ones also occur where they are not meant: masking them would falsify messages. */
const SHORTEST_SECRET = 8;
/** A part of a secret this long is masked too: servers cut what they quote. */
const TELLING_PART = 16;

/** A header as it was sent, in any notation of name and value. Its value is masked, however short. */
const AUTHORIZATION = /(authorization["']?\s*[:=,]\s*["']?)(?:[a-z]+\s+)?[^\s"',;<>]+/gi;

/** The text without these secrets, in whatever form they came back. For free text only: it may change any part of it. */
export function maskSecrets(text: string, secrets: Iterable<string>): string {
  const forms = new Set([...secrets].flatMap(formsOf));
  // Longest first: one may be part of another.
  const ordered = [...forms].toSorted((a, b) => b.length - a.length);
  return ordered.reduce(maskOne, text).replace(AUTHORIZATION, `$1${MASK}`);
}

/** As it is, and as texts within URLs, JSON, HTML and headers show it. */
function formsOf(secret: string): string[] {
  const html = secret.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
  const named = secret.replace(/[&<>"]/g, (char) => HTML_NAMES.get(char)!);
  const forms = [
    secret,
    encode(secret),
    JSON.stringify(secret).slice(1, -1),
    html,
    named,
    Buffer.from(secret).toString("base64").replace(/=+$/, ""),
    Buffer.from(secret).toString("base64url"),
  ];
  return forms.filter((form) => form.length >= SHORTEST_SECRET && secret.length >= SHORTEST_SECRET);
}

const HTML_NAMES: ReadonlyMap<string, string> = new Map([
  ["&", "&amp;"],
  ["<", "&lt;"],
  [">", "&gt;"],
  ['"', "&quot;"],
]);

/** Half of a surrogate pair has no encoding. */
function encode(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    return text;
  }
}

function maskOne(text: string, secret: string): string {
  const width = Math.min(secret.length, TELLING_PART);
  const parts = new Set<string>();
  for (let i = 0; i + width <= secret.length; i++) parts.add(secret.slice(i, i + width));
  let clean = "";
  let at = 0;
  while (at < text.length) {
    if (!parts.has(text.slice(at, at + width))) {
      clean += text[at++];
      continue;
    }
    clean += MASK;
    let end = at + width;
    while (end < text.length && parts.has(text.slice(end - width + 1, end + 1))) end++;
    at = end;
  }
  return clean;
}
