/**
 * Credentials in backend URLs never reach a screen or a log, whoever wrote the
 * message they are in. What a URL holds is remembered before anything else looks
 * at it, and struck out of every line that is printed.
 */

const known = new Set<string>();
const MASK = "***";
/** Striking out shorter ones would make mush of every message; inside a URL they are struck out anyway. */
const SHORTEST = 3;
const TELLING = /pass|pwd|secret|token|key|auth|cred/i;

/** Remembers the credentials of something that may be a URL. */
export function rememberSecrets(text: string): void {
  for (const match of text.matchAll(/[a-z][a-z0-9+.-]*:\/\/([^/?#\s]*)@/gi)) {
    const userinfo = match[1]!;
    add(userinfo);
    const colon = userinfo.indexOf(":");
    // A lone user name is often a token.
    add(colon < 0 ? userinfo : userinfo.slice(colon + 1));
  }
  for (const match of text.matchAll(/[?&]([^=&#\s]+)=([^&#\s]*)/g)) {
    if (TELLING.test(match[1]!)) add(match[2]!);
  }
}

/** Remembers a secret that is known to be one. */
export function rememberSecret(secret: string): void {
  add(secret);
}

/** The text without any credential that is known or looks like one. */
export function redact(text: string): string {
  let clean = text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^/?#\s"']*@/gi, `$1${MASK}@`);
  // Longest first: one may be part of another.
  for (const secret of [...known].sort((a, b) => b.length - a.length)) clean = clean.replaceAll(secret, MASK);
  return clean;
}

/** A backend URL as it may be shown: no user, no password, no parameters. */
export function showUrl(url: string): string {
  return redact(url.replace(/[?#].*$/s, "")).replace("***@", "");
}

function add(secret: string): void {
  for (const form of [secret, decoded(secret), encodeURIComponent(decoded(secret))]) {
    if (form.length >= SHORTEST) known.add(form);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
