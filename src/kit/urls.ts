/** Store URLs in text that people read: without the credentials they hold. */
import { MASK } from "./secrets.js";

const TELLING = "(?:pass|pwd|secret|token|key|auth|cred)";
const TELLING_NAME = new RegExp(TELLING, "i");
/** `?key=/etc/ssl/key.pem` names a file: hiding it would only hide what is wrong with it. */
const PATH = /^\.{0,2}\/[^/]+\//;

const SCHEME = "([a-z][a-z0-9+.-]*:\\/\\/)";
const USER_INFO = new RegExp(`${SCHEME}[^/?#\\s"']*@`, "gi");
/** A password with an unescaped `/`, `?` or `#`: what looks like a port is not a number. */
const ODD_USER_INFO = new RegExp(`${SCHEME}(?=[^/?#\\s"'@:]*:(?!\\d+(?:[/?#,\\s"']|$)))\\S*@`, "gi");
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
    .replace(USER_INFO, `$1${MASK}@`)
    .replace(ODD_USER_INFO, `$1${MASK}@`)
    .replace(PARAMETER, (whole, name: string, value: string) =>
      PATH.test(decoded(value)) ? whole : `${name}${MASK}`,
    );
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
