/** What a node of the demo and its director say to each other, besides the node's log lines. */

/** Node to director: write to the ledger, please. */
export interface WriteRequest {
  readonly kind: "write";
  readonly id: number;
  readonly token: string;
  readonly late: boolean;
}

/** Director to node. */
export type DirectorMessage =
  | { readonly kind: "verdict"; readonly id: number; readonly accepted: boolean; readonly highest: string }
  /** Send once more what you wrote last, as if it had been long under way. */
  | { readonly kind: "write-late" };

export function isWriteRequest(message: unknown): message is WriteRequest {
  if (!isObject(message) || message["kind"] !== "write") return false;
  const { id, token, late } = message;
  return (
    typeof id === "number" &&
    typeof late === "boolean" &&
    typeof token === "string" &&
    /^[0-9]{1,30}$/.test(token)
  );
}

export function isDirectorMessage(message: unknown): message is DirectorMessage {
  if (!isObject(message)) return false;
  const { kind, id, accepted, highest } = message;
  if (kind === "write-late") return true;
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
