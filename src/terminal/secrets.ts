/**
 * Credentials never reach a screen or a log, whoever wrote the message they are
 * in. Only free text is changed (messages of errors), before it becomes part of
 * a line: names, tokens and other fields are printed as they are, even if they
 * equal a password.
 */
import { MASK, maskSecrets } from "../kit/secrets.js";

const known = new Set<string>();
const TELLING = "(?:pass|pwd|secret|token|key|auth|cred)";
const TELLING_NAME = new RegExp(TELLING, "i");
/** `?key=/etc/ssl/key.pem` names a file: hiding it would only hide what is wrong with it. */
const PATH = /^\.{0,2}\/[^/]+\//;

const SCHEME = "([a-z][a-z0-9+.-]*:\\/\\/)";
const USER_INFO = new RegExp(`${SCHEME}[^/?#\\s"']*@`, "gi");
/** A password with an unescaped `/`, `?` or `#`: what looks like a port is not a number. */
const ODD_USER_INFO = new RegExp(`${SCHEME}(?=[^/?#\\s"'@:]*:(?!\\d+(?:[/?#,\\s"']|$)))\\S*@`, "gi");
const PARAMETER = new RegExp(`([?&][^=&#\\s"']*${TELLING}[^=&#\\s"']*=)([^&#\\s"']+)`, "gi");

/** Remembers the credentials of a backend URL, before anything else looks at it. */
export function rememberSecrets(url: string): void {
  for (const match of url.matchAll(/[a-z][a-z0-9+.-]*:\/\/(\S*)@/gi)) {
    const userinfo = match[1]!;
    rememberSecret(userinfo);
    const colon = userinfo.indexOf(":");
    // A lone user name is often a token.
    if (colon >= 0) rememberSecret(userinfo.slice(colon + 1));
  }
  for (const [, name, value] of url.matchAll(/[?&]([^=&#\s]+)=([^&#\s]*)/g)) {
    if (TELLING_NAME.test(name!) && !PATH.test(decoded(value!))) rememberSecret(value!);
  }
}

/** Remembers a secret that is known to be one. */
export function rememberSecret(secret: string): void {
  known.add(secret);
  known.add(decoded(secret));
}

/** Free text without any credential that is known, or that a URL in it holds. */
export function redact(text: string): string {
  return maskSecrets(maskUrls(text), known);
}

/** A backend URL as it may be shown: no user, no password, no parameters. */
export function showUrl(url: string): string {
  return maskUrls(url)
    .replace(`${MASK}@`, "")
    .replace(/[?#].*$/s, "");
}

function maskUrls(text: string): string {
  return text
    .replace(USER_INFO, `$1${MASK}@`)
    .replace(ODD_USER_INFO, `$1${MASK}@`)
    .replace(PARAMETER, (whole, name: string, value: string) =>
      PATH.test(decoded(value)) ? whole : `${name}${MASK}`,
    );
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
