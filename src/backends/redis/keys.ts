/** Where things are kept. The name is in a hash tag: in a cluster, whatever is added for an election later shares its slot. */
import { invalid } from "../../kit/errors.js";

export const DEFAULT_PREFIX = "conclave:";
// oxlint-disable-next-line no-control-regex -- control characters are what we look for
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Keys of one kind. `outer` is what the client itself puts before keys. */
export interface KeyPattern {
  /** For SCAN. */
  readonly pattern: (outer: string) => string;
  /** The name that a key is of; `undefined`: it is of another kind. */
  readonly nameOf: (key: string, outer: string) => string | undefined;
}

export class Keys {
  readonly prefix: string;

  constructor(prefix: string = DEFAULT_PREFIX) {
    if (CONTROL.test(prefix)) throw invalid("the key prefix holds a control character: remove it");
    // A brace in the prefix would be the hash tag, and put every election into one slot or the names into none.
    if (/[{}]/.test(prefix)) throw invalid('the key prefix holds "{" or "}": remove it');
    this.prefix = prefix;
  }

  lease(name: string): string {
    return `${this.prefix}{${encode(name)}}`;
  }

  record(name: string): string {
    return `${this.prefix}r:{${encode(name)}}`;
  }

  /** Since when this server has been the primary, as far as it is known. One for all elections; not in a cluster. */
  get epoch(): string {
    return `${this.prefix}epoch`;
  }

  /** All leases. */
  get leases(): KeyPattern {
    return keysAfter(this.prefix);
  }

  /** All records. */
  get records(): KeyPattern {
    return keysAfter(`${this.prefix}r:`);
  }
}

function keysAfter(prefix: string): KeyPattern {
  return {
    pattern: (outer) => `${(outer + prefix).replace(/[*?[\]\\^]/g, "\\$&")}{*}`,
    nameOf: (key, outer) => {
      const start = `${outer}${prefix}{`;
      if (!key.startsWith(start) || !key.endsWith("}")) return undefined;
      return decode(key.slice(start.length, -1));
    },
  };
}

/** Braces would end the hash tag early. */
function encode(name: string): string {
  return name.replace(/[%{}]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

function decode(text: string): string {
  return text.replace(/%(25|7B|7D)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
