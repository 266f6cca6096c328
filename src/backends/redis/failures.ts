/** What an error of Redis or of its client means: what was refused, whether it may pass, and what to do. */
import { ConclaveError, describe, isConclaveError } from "../../kit/errors.js";
import type { ErrorCode } from "../../kit/errors.js";
import { printable } from "../../kit/printable.js";
import { maskSecrets } from "../../kit/secrets.js";

interface Meaning {
  readonly code: ErrorCode;
  readonly advice: string;
}

const LONGEST = 300;
const NOTHING = "nothing was written";

/** By the first word of the server's answer. All of these say that the command was not carried out. */
const REPLIES: ReadonlyMap<string, Meaning> = new Map([
  [
    "NOAUTH",
    { code: "forbidden", advice: "give a password: in the URL, by REDIS_PASSWORD, or to your client" },
  ],
  ["WRONGPASS", { code: "forbidden", advice: "check user name and password" }],
  [
    "NOPERM",
    {
      code: "forbidden",
      advice:
        "let the user run the commands that docs/backends/redis.md lists (ACL SETUSER … +eval +evalsha …)",
    },
  ],
  [
    "READONLY",
    {
      code: "unavailable",
      advice: `this server is a replica: name the primary, or its Sentinels; ${NOTHING}`,
    },
  ],
  [
    "NOREPLICAS",
    {
      code: "unavailable",
      advice: `too few replicas follow this primary (min-replicas-to-write); ${NOTHING}`,
    },
  ],
  [
    "OOM",
    { code: "unavailable", advice: `the server is out of memory: raise maxmemory or free some; ${NOTHING}` },
  ],
  [
    "MISCONF",
    {
      code: "unavailable",
      advice: `the server cannot save to its disk and takes no writes: free disk space; ${NOTHING}`,
    },
  ],
  ["LOADING", { code: "unavailable", advice: `the server is still reading its data; ${NOTHING}` }],
  ["MASTERDOWN", { code: "unavailable", advice: `the replica has lost its primary; ${NOTHING}` }],
  ["CLUSTERDOWN", { code: "unavailable", advice: `a part of the cluster has no primary; ${NOTHING}` }],
  ["TRYAGAIN", { code: "unavailable", advice: `the cluster is moving this key; ${NOTHING}` }],
  ["BUSY", { code: "unavailable", advice: `another script blocks the server; ${NOTHING}` }],
  [
    "MOVED",
    {
      code: "unsupported",
      advice: "this server is a node of a cluster: add ?cluster=true to the URL, or hand in a Cluster client",
    },
  ],
  [
    "CROSSSLOT",
    {
      code: "unsupported",
      advice: "this server is a node of a cluster: add ?cluster=true to the URL, or hand in a Cluster client",
    },
  ],
  [
    "WRONGTYPE",
    {
      code: "conflict",
      advice: "the key holds something else and was left alone: use another prefix or election name",
    },
  ],
] as const);

/** What could not be done, as an error of the library. `what` names the request: `writing election "jobs"`. */
export function failure(what: string, error: unknown, secrets: readonly string[]): ConclaveError {
  if (isConclaveError(error)) return error;
  const raw = describe(error);
  const said = quoted(maskSecrets(raw, secrets));
  const meaning = meaningOf(raw);
  if (meaning !== undefined)
    return new ConclaveError(meaning.code, `${what}: Redis answered "${said}"; ${meaning.advice}`);
  if (isReply(error))
    return new ConclaveError("unavailable", `${what}: Redis answered "${said}"; ${NOTHING}`);
  const unknown = READS.test(what) ? "" : "; whether it took effect is unknown";
  return new ConclaveError("unavailable", `${what}: no answer from Redis (${said})${unknown}`);
}

/** What only asks has no effect. */
const READS = /^(?:reading|asking|listing) /;

/** No connection came about, so nothing was sent. What the server itself refuses is left as it is. */
export function unreachable(error: unknown, hosts: string | undefined, secrets: readonly string[]): unknown {
  if (isConclaveError(error) || isReply(error)) return error;
  const at = hosts === undefined ? "" : ` at ${hosts}`;
  return new ConclaveError(
    "unavailable",
    `Redis${at} cannot be reached (${quoted(maskSecrets(describe(error), secrets))}): check host, port, TLS settings and that it runs`,
  );
}

function meaningOf(text: string): Meaning | undefined {
  const word = /^[A-Z]+/.exec(text)?.[0] ?? "";
  const known = REPLIES.get(word);
  if (known !== undefined) return known;
  // Servers before 6.2 and those with renamed commands.
  if (/invalid password|without any password|AUTH <password>/i.test(text)) return REPLIES.get("WRONGPASS");
  if (/unknown command .?evalsha|unknown command .?eval/i.test(text))
    return {
      code: "unsupported",
      advice: "this server has no EVAL, which elections need: allow it, or use another backend",
    };
  return undefined;
}

/** The server itself answered with an error: what was asked was not done. */
export function isReply(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    /ReplyError|SimpleError|BlobError|ErrorReply/.test(`${error.name} ${error.constructor.name}`) ||
    meaningOf(error.message) !== undefined
  );
}

export function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

/** Answers after which another connection may reach another server: a failover has taken place, or is about to. */
export function isWrongServer(error: unknown): boolean {
  return error instanceof Error && /^(READONLY|MASTERDOWN|CLUSTERDOWN|NOAUTH)/.test(error.message);
}

function quoted(text: string): string {
  const clean = printable(text.replace(/[\s\p{Cc}]+/gu, " ").trim());
  return clean.length > LONGEST ? `${clean.slice(0, LONGEST)}…` : clean;
}
