/** Store URLs in text that people read: without the credentials they hold. */
import { MASK } from "./secrets.js";

const TELLING = "(?:pass|pwd|secret|token|key|auth|cred)";
const TELLING_NAME = new RegExp(TELLING, "i");
/** `?key=/etc/ssl/key.pem` names a file: hiding it would only hide what is wrong with it. */
const PATH = /^\.{0,2}\/[^/]+\//;
/** `key-file=…` in an example, with the comma that follows it. */
const LEFT_OUT = /^…[,;.)]?$/;

const SCHEME = "([a-z][a-z0-9+.-]*:\\/\\/)";
const USER_INFO = new RegExp(`${SCHEME}([^/?#\\s"']*)@`, "gi");
/** What stands before an @ in these URLs are names of peers. Messages compare lists, and must show them. */
export const LISTS_PEERS = /^(?:raft|bully)(?::\/\/)?$/i;
const PEERS = /^(?:[\w.-]+@[^@,\s]+,)*[\w.-]+$/;
/** As messages write it to show where a user and a password go. */
const TEMPLATE = /^(?:user|user:password|:password)$/;
/** A password with an unescaped `/`, `?` or `#`: what looks like a port is not a number. */
const ODD_USER_INFO = new RegExp(`${SCHEME}(?=[^/?#\\s"'@:]*:(?!\\d+(?:[/?#,\\s"']|$)))(\\S*)@`, "gi");
const PARAMETER = new RegExp(`([?&][^=&#\\s"']*${TELLING}[^=&#\\s"']*=)([^&#\\s"']+)`, "gi");

/** A store's URL as it may be shown: no user, no password, no parameters. */
export function showUrl(url: string): string {
  return maskUrls(url)
    .replace(`${MASK}@`, "")
    .replace(/[?#].*$/s, "");
}

/** Text in which URLs keep neither users nor passwords nor parameters that sound like a secret. */
export function maskUrls(text: string): string {
  return text
    .replace(USER_INFO, maskUser)
    .replace(ODD_USER_INFO, maskUser)
    .replace(PARAMETER, (whole, name: string, value: string) =>
      PATH.test(decoded(value)) || LEFT_OUT.test(value) ? whole : `${name}${MASK}`,
    );
}

function maskUser(whole: string, scheme: string, user: string): string {
  const harmless = TEMPLATE.test(user) || user === MASK || (LISTS_PEERS.test(scheme) && PEERS.test(user));
  return harmless ? whole : `${scheme}${MASK}@`;
}

/** Whether the value of this parameter of a URL is a secret. */
export function isSecretParameter(name: string, value: string): boolean {
  return TELLING_NAME.test(name) && !PATH.test(decoded(value));
}

/** Percent-encoded text as it was meant; text that cannot be decoded as it is. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
