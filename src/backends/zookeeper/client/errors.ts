/** ZooKeeper's error numbers, each as an error that says what to do. */
import { ConclaveError, type ErrorCode } from "../../../kit/errors.js";

/**
 * What an error means for whoever asked:
 * - `retriable`: the same request may succeed later; whether this one took effect is unknown, unless `errno` is set.
 * - `permanent`: it will be refused again until somebody changes something.
 * - `lost`: the session is over for certain.
 */
export type ZooKeeperErrorKind = "retriable" | "permanent" | "lost";

/** An error that ZooKeeper answered with, or that kept it from answering. */
export class ZooKeeperError extends ConclaveError {
  readonly kind: ZooKeeperErrorKind;
  /** ZooKeeper's own number, where a server answered: then the request was certainly not carried out. */
  readonly errno: number | undefined;

  constructor(
    kind: ZooKeeperErrorKind,
    code: ErrorCode,
    message: string,
    more: { errno?: number; cause?: unknown } = {},
  ) {
    super(code, message, { retriable: kind !== "permanent", cause: more.cause });
    this.name = "ZooKeeperError";
    this.kind = kind;
    this.errno = more.errno;
  }
}

export const ERRNO = {
  ok: 0,
  unimplemented: -6,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  noChildrenForEphemerals: -108,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  invalidAcl: -114,
  authFailed: -115,
  sessionMoved: -118,
  notReadOnly: -119,
  ephemeralOnLocalSession: -120,
  requestTimeout: -122,
  saslRequired: -124,
} as const;

type Meaning = readonly [kind: ZooKeeperErrorKind, code: ErrorCode, text: string];

const MEANINGS: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [
    ERRNO.unimplemented,
    ["permanent", "unsupported", "does not know this request: ZooKeeper 3.5.3 or newer is needed"],
  ],
  [ERRNO.noNode, ["retriable", "unavailable", "has no such node"]],
  [
    ERRNO.noAuth,
    [
      "permanent",
      "forbidden",
      "denied permission: check the digest user and password (ZOOKEEPER_AUTH=user:password), and the ACL of the node",
    ],
  ],
  [ERRNO.badVersion, ["retriable", "unavailable", "has another version of the node"]],
  [
    ERRNO.noChildrenForEphemerals,
    [
      "permanent",
      "conflict",
      "refused a node below a candidate's own node: election names must not nest; choose another name",
    ],
  ],
  [ERRNO.nodeExists, ["retriable", "unavailable", "has this node already"]],
  [ERRNO.notEmpty, ["retriable", "unavailable", "has nodes below this one"]],
  [ERRNO.sessionExpired, ["lost", "unavailable", "says that the session is over"]],
  [
    ERRNO.invalidAcl,
    [
      "permanent",
      "forbidden",
      "refused the ACL: acl=creator needs a digest user and password (ZOOKEEPER_AUTH=user:password)",
    ],
  ],
  [
    ERRNO.authFailed,
    [
      "permanent",
      "forbidden",
      "refused the authentication: check the digest user and password (ZOOKEEPER_AUTH=user:password)",
    ],
  ],
  [
    ERRNO.sessionMoved,
    ["retriable", "unavailable", "says that the session has moved to another server; connecting again"],
  ],
  [
    ERRNO.notReadOnly,
    ["retriable", "unavailable", "is cut off from its ensemble and read-only; trying another server"],
  ],
  [
    ERRNO.ephemeralOnLocalSession,
    [
      "permanent",
      "unsupported",
      "keeps this session to itself: set localSessionsUpgradingEnabled=true (or localSessionsEnabled=false) on the servers",
    ],
  ],
  [ERRNO.requestTimeout, ["retriable", "timeout", "did not finish in time"]],
  [
    ERRNO.saslRequired,
    [
      "permanent",
      "unsupported",
      "demands SASL, which this library does not speak: use digest or TLS client certificates",
    ],
  ],
]);

/** The error for a number that a server answered with. Unknown numbers are taken for passing faults. */
export function serverError(errno: number, what: string, who: string): ZooKeeperError {
  const [kind, code, text] = MEANINGS.get(errno) ?? [
    "retriable",
    "unavailable",
    "could not serve the request",
  ];
  return new ZooKeeperError(kind, code, `ZooKeeper at ${who} ${text} (${what}, error ${errno})`, { errno });
}

export function isErrno(error: unknown, errno: number): boolean {
  return error instanceof ZooKeeperError && error.errno === errno;
}

/** Whether a server refused the request, so that it was certainly not carried out. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ZooKeeperError && error.errno !== undefined && error.errno !== ERRNO.requestTimeout;
}

/** The connection ended: whether requests on it took effect is unknown. */
export function connectionLost(who: string, why: string, cause?: unknown): ZooKeeperError {
  return new ZooKeeperError(
    "retriable",
    "unavailable",
    `the connection to ZooKeeper at ${who} was lost: ${why}`,
    {
      cause,
    },
  );
}

/** What came is no message of ZooKeeper's. */
export function unreadable(who: string, why: string): ZooKeeperError {
  return new ZooKeeperError(
    "retriable",
    "unavailable",
    `ZooKeeper at ${who} sent an unreadable answer: ${why}`,
  );
}

/** Why no connection came about, in words that say what to do. */
export function dialError(error: unknown, who: string, secure: boolean): ZooKeeperError {
  if (error instanceof ZooKeeperError) return error;
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  const failed = (kind: ZooKeeperErrorKind, errorCode: ErrorCode, text: string): ZooKeeperError =>
    new ZooKeeperError(kind, errorCode, text, { cause: error });
  if (code.startsWith("ERR_SSL") || code === "EPROTO")
    return failed(
      "permanent",
      "forbidden",
      `no TLS connection to ZooKeeper at ${who} (${code}): check that this is its secureClientPort, and the client certificate if it ` +
        `demands one (?cert=file&key=file)`,
    );
  if (code.includes("CERT") || code.includes("SIGNATURE") || code.startsWith("ERR_TLS"))
    return failed(
      "permanent",
      "forbidden",
      `the certificate of ZooKeeper at ${who} is not trusted (${code}): give the CA that signed it (?ca=file), and use a ` +
        `host name that is in the certificate`,
    );
  const hint = code === "" ? "" : ` (${code})`;
  const tls = secure ? ", and that this is its secureClientPort" : "";
  return failed(
    "retriable",
    "unavailable",
    `cannot reach ZooKeeper at ${who}${hint}: check that it runs there, that the address is right${tls}`,
  );
}

/** A server closes the connection without a word if it serves no session now. */
export class HandshakeRefused extends ZooKeeperError {}

export function handshakeRefused(who: string, cause: ZooKeeperError): ZooKeeperError {
  if (cause.errno !== undefined) return cause;
  return new HandshakeRefused(
    "retriable",
    "unavailable",
    `ZooKeeper at ${who} refused a session: it is starting, cut off from its ensemble (perhaps read-only), behind what other ` +
      `servers have shown us, at its limit of connections (maxClientCnxns), or no ZooKeeper client port (or one with TLS: zookeepers://)`,
    { cause },
  );
}

/** Awaits an answer; "no such node" is one, too. */
export async function nullIfNoNode<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (isErrno(error, ERRNO.noNode)) return null;
    throw error;
  }
}
