/**
 * Credentials never reach a screen or a log, whoever wrote the message they are
 * in. Only free text is changed (messages of errors), before it becomes part of
 * a line: names, tokens and other fields are printed as they are, even if they
 * equal a password.
 */
import { maskSecrets } from "../kit/secrets.js";
import { decoded, isSecretParameter, LISTS_PEERS, maskUrls } from "../kit/urls.js";

const known = new Set<string>();

/** Remembers the credentials of a backend URL, before anything else looks at it. */
export function rememberSecrets(url: string): void {
  for (const [, scheme = "", userinfo = ""] of url.matchAll(/([a-z][a-z0-9+.-]*):\/\/(\S*)@/gi)) {
    if (LISTS_PEERS.test(scheme)) continue;
    rememberSecret(userinfo);
    const colon = userinfo.indexOf(":");
    // A lone user name is often a token.
    if (colon >= 0) rememberSecret(userinfo.slice(colon + 1));
  }
  for (const [, name, value] of url.matchAll(/[?&]([^=&#\s]+)=([^&#\s]*)/g)) {
    if (isSecretParameter(name!, value!)) rememberSecret(value!);
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
