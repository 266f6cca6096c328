/** The control record as JSON. What others wrote is checked; fields of newer versions are kept when it is written again. */
import { ConclaveError } from "../kit/errors.js";
import { parseToken } from "../kit/token.js";

/**
 * What a leader can be asked to do. `resign`: stop the work and give leadership
 * up. `transfer`: the same, in favour of the candidate `to`.
 */
export type Ask = { readonly kind: "resign" } | { readonly kind: "transfer"; readonly to: string };

/**
 * One request to one term. Candidate and token guard it: a term with another
 * token ignores it, so that an old request can never hit a later leadership.
 */
export interface ControlRequest {
  /** Unique: the answer names it. */
  readonly id: string;
  readonly ask: Ask;
  readonly candidate: string;
  readonly token: bigint;
  /** By the wall clock of whoever asked; for people. */
  readonly at: number;
  /** Who asked; for people. */
  readonly by: string;
}

/** What the leader made of a request. `accepted`: it has begun; the result shows in who leads. */
export interface RequestAnswer {
  /** Of the request. */
  readonly id: string;
  readonly outcome: "accepted" | "refused";
  readonly detail: string;
}

/** While it is set nobody new is elected. */
export interface Pause {
  /** By the wall clock of whoever paused it; for people. */
  readonly since: number;
  /** Who paused it; for people. */
  readonly by: string;
  /**
   * The token of the leader that was found once the pause could be seen, 0 for
   * nobody: whoever leads with a higher one does not follow pauses. `undefined`: not noted.
   */
  readonly found?: bigint | undefined;
}

/** Why nothing is handed over meanwhile: whoever is named would give it back, and nobody would lead. */
export function pausedText(election: string): string {
  return `"${election}" is paused: \`conclave unpause ${election}\` first`;
}

/** All that operators ask of one election. */
export interface Controls {
  readonly pause: Pause | null;
  /** The newest request; it stays after it was answered. */
  readonly request: ControlRequest | null;
  /** To {@link request}; `null`: nobody has answered yet. */
  readonly answer: RequestAnswer | null;
  /** Fields that this version does not know. */
  readonly more: Readonly<Record<string, unknown>>;
}

export const NO_CONTROLS: Controls = { pause: null, request: null, answer: null, more: {} };

/** What is left of a record that was to be removed, in a store that can remove none. */
export const EMPTY = "{}";

const FORMAT = 1;
const LARGEST_TEXT = 16 * 1024;
const LONGEST_DETAIL = 500;

export function encodeControls({ pause, request, answer, more }: Controls): string {
  return JSON.stringify({
    ...more,
    v: FORMAT,
    pause: pause && { ...pause, found: pause.found?.toString() },
    request: request && { ...request, token: request.token.toString() },
    answer: answer && { ...answer, detail: answer.detail.slice(0, LONGEST_DETAIL) },
  });
}

export function decodeControls(text: string, election: string): Controls {
  const decoded = text.length <= LARGEST_TEXT ? decode(text) : undefined;
  if (decoded !== undefined) return decoded;
  throw new ConclaveError(
    "conflict",
    `the control record of election "${election}" cannot be read by this version; it was left alone. Upgrade this ` +
      "program, or remove the record",
  );
}

function decode(text: string): Controls | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const object = fields(parsed);
  if (object === undefined) return undefined;
  const { v, pause, request, answer, ...more } = object;
  if (v !== FORMAT) return undefined;
  const decoded = {
    pause: decodePause(pause),
    request: decodeRequest(request),
    answer: decodeAnswer(answer),
  };
  const { pause: paused, request: asked, answer: answered } = decoded;
  if (paused === undefined || asked === undefined || answered === undefined) return undefined;
  return { pause: paused, request: asked, answer: answered, more };
}

function decodePause(value: unknown): Pause | null | undefined {
  if (value === null || value === undefined) return null;
  const { since, by, found } = fields(value) ?? {};
  if (typeof since !== "number" || typeof by !== "string") return undefined;
  const token = parseToken(found);
  return token === undefined ? { since, by } : { since, by, found: token };
}

function decodeRequest(value: unknown): ControlRequest | null | undefined {
  if (value === null || value === undefined) return null;
  const { id, ask, candidate, token, at, by } = fields(value) ?? {};
  const number = parseToken(token);
  const what = decodeAsk(ask);
  // What a newer version asks is not for this leader; who asked sees that nobody answers.
  if (what === undefined) return null;
  if (typeof id !== "string" || typeof candidate !== "string" || number === undefined) return undefined;
  if (typeof at !== "number" || typeof by !== "string") return undefined;
  return { id, ask: what, candidate, token: number, at, by };
}

function decodeAsk(value: unknown): Ask | undefined {
  const { kind, to } = fields(value) ?? {};
  if (kind === "resign") return { kind };
  return kind === "transfer" && typeof to === "string" ? { kind, to } : undefined;
}

function decodeAnswer(value: unknown): RequestAnswer | null | undefined {
  if (value === null || value === undefined) return null;
  const { id, outcome, detail } = fields(value) ?? {};
  if (typeof id !== "string" || typeof detail !== "string") return undefined;
  return outcome === "accepted" || outcome === "refused" ? { id, outcome, detail } : undefined;
}

function fields(value: unknown): Record<string, unknown> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return value as Record<string, unknown>;
}
