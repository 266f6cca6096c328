/** What a node of the demo and its director say to each other, besides the node's log lines. */

/** Node to director. */
export type NodeMessage =
  /** Write to the ledger, please. */
  | { readonly kind: "write"; readonly id: number; readonly token: string; readonly late: boolean }
  /** The store has extended my lease. */
  | {
      readonly kind: "lease";
      readonly at: number;
      readonly token: string;
      readonly remainingMs: number;
      readonly marginMs: number;
    }
  /** Calls to the store since the last such message. */
  | { readonly kind: "ops"; readonly count: number };

export type WriteRequest = NodeMessage & { readonly kind: "write" };

/** Director to node. */
export type DirectorMessage =
  | { readonly kind: "verdict"; readonly id: number; readonly accepted: boolean; readonly highest: string }
  /** Send once more what you wrote last, as if it had been long under way. */
  | { readonly kind: "write-late" }
  /** Give your leadership up. */
  | { readonly kind: "resign" }
  /** From now on the store cannot be reached, or can be again. */
  | { readonly kind: "cut"; readonly on: boolean };

export function isNodeMessage(message: unknown): message is NodeMessage {
  if (!isObject(message)) return false;
  const { kind, id, late, at, remainingMs, marginMs, count } = message;
  switch (kind) {
    case "write":
      return typeof id === "number" && typeof late === "boolean" && isToken(message["token"]);
    case "lease":
      return [at, remainingMs, marginMs].every(Number.isFinite) && isToken(message["token"]);
    case "ops":
      return typeof count === "number" && Number.isFinite(count);
    default:
      return false;
  }
}

export function isDirectorMessage(message: unknown): message is DirectorMessage {
  if (!isObject(message)) return false;
  const { kind, id, accepted, highest, on } = message;
  if (kind === "write-late" || kind === "resign") return true;
  if (kind === "cut") return typeof on === "boolean";
  return (
    kind === "verdict" &&
    typeof id === "number" &&
    typeof accepted === "boolean" &&
    typeof highest === "string"
  );
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function isToken(token: unknown): token is string {
  return typeof token === "string" && /^[0-9]{1,30}$/.test(token);
}
