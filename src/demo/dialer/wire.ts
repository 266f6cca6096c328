/** What an instance of the dialer and whoever started it say to each other. */
import { isObject } from "../wire.js";

/** To an instance, once it is ready. */
export interface Orders {
  readonly name: string;
  /** Where the store is. */
  readonly directory: string;
  /** Whom to ring at. */
  readonly exchange: string;
  readonly customers: readonly string[];
  /** Nine o'clock on the day without Conclave; on all days after it there is Conclave. */
  readonly plain: number;
  /** Started again on a later day: the one without Conclave is over. */
  readonly again: boolean;
}

/** From an instance. */
export type Word =
  | { readonly kind: "ready" | "leads" | "follows" }
  /** The list of this instant is called, and that is written down. */
  | { readonly kind: "settled"; readonly list: number };

/** What is sent with a call. */
export interface Call {
  /** `null`: the list is claimed and begins. */
  readonly customer: string | null;
  readonly list: number;
  readonly by: string;
}

export const CALL_HEADER = "x-call";

export function isOrders(message: unknown): message is Orders {
  if (!isObject(message)) return false;
  const { name, directory, exchange, customers, plain, again } = message;
  return (
    [name, directory, exchange].every((text) => typeof text === "string") &&
    Array.isArray(customers) &&
    customers.every((customer) => typeof customer === "string") &&
    Number.isFinite(plain) &&
    typeof again === "boolean"
  );
}

export function isWord(message: unknown): message is Word {
  if (!isObject(message)) return false;
  const { kind, list } = message;
  if (kind === "settled") return Number.isFinite(list);
  return kind === "ready" || kind === "leads" || kind === "follows";
}

/** `null`: not a call. */
export function parseCall(text: unknown): Call | null {
  if (typeof text !== "string") return null;
  try {
    const call: unknown = JSON.parse(text);
    if (!isObject(call)) return null;
    const { customer, list, by } = call;
    if (customer !== null && typeof customer !== "string") return null;
    if (typeof list !== "number" || typeof by !== "string") return null;
    return { customer, list, by };
  } catch {
    return null;
  }
}
