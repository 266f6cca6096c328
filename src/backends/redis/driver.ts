/**
 * What the backend needs of a client. Connections are made from a client that was
 * handed in, never used as it is: its other commands would delay renewals, and a
 * connection that has gone silent could not be given up.
 */

/** A connection for commands. Used until it fails, then replaced by another. */
export interface Link {
  /** Settles when it can be used, or cannot be made. */
  readonly ready: Promise<void>;
  /** `key` says which node of a cluster is meant. */
  send(args: readonly string[], key: string | undefined): Promise<unknown>;
  /** Ways to ask each node that holds keys of its own. */
  nodes(): Promise<readonly ((args: readonly string[]) => Promise<unknown>)[]>;
  /** Ends it at once. Calls under way are rejected, or never answered. */
  end(): void;
}

/** A connection for messages alone: with RESP2 nothing else can be asked on it. */
export interface SubscriberLink {
  readonly ready: Promise<void>;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  ping(): Promise<unknown>;
  end(): void;
}

export interface SubscriberEvents {
  message(channel: string, text: string): void;
  /** The connection is gone, or may have missed messages. */
  broken(): void;
}

export interface Driver {
  /** What the client puts before every key by itself. */
  readonly keyPrefix: string;
  /** Messages are not confined to a database: the channel's name has to be. */
  readonly database: number;
  readonly cluster: boolean;
  /** Passwords it knows. They are masked in what others say. */
  readonly secrets: readonly string[];
  /** Where it connects to, for people; `undefined`: it does not tell. */
  readonly hosts: string | undefined;
  link(): Link;
  subscriber(events: SubscriberEvents): SubscriberLink;
}

/** Whether it is an object with these methods. */
export function hasMethods<Name extends string>(
  value: unknown,
  ...names: readonly Name[]
): value is Record<Name, (...args: unknown[]) => unknown> {
  if (typeof value !== "object" || value === null) return false;
  return names.every((name) => typeof Reflect.get(value, name) === "function");
}

/** A property of something whose shape is not known. */
export function property(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const name of path) {
    if (typeof found !== "object" || found === null) return undefined;
    found = Reflect.get(found, name);
  }
  return found;
}

export function passwords(...values: readonly unknown[]): readonly string[] {
  return values.filter((value) => typeof value === "string" && value !== "").map(String);
}

/** `host:port`, several with commas, of objects that have them. No user, no password. */
export function hostList(...places: readonly unknown[]): string | undefined {
  const named = places.flatMap((place) => {
    const [host, port, path] = ["host", "port", "path"].map((name) => property(place, name));
    if (typeof path === "string" && path !== "") return [path];
    if (typeof host !== "string" && typeof port !== "number") return [];
    return [`${typeof host === "string" ? host : "localhost"}:${Number(port ?? 6379)}`];
  });
  return named.length === 0 ? undefined : named.join(",");
}
