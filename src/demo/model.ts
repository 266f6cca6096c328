/**
 * What the demo is about, apart from how it is shown: events, and the state they
 * add up to. Plain data, ready for JSON: a terminal prints it, the page draws it.
 */
import type { Line } from "../terminal/lines.js";
import type { Terms } from "./terms.js";
import { began, died, ended, leased, stopped } from "./terms.js";

type NodeState =
  /** Not heard of yet. */
  | "starting"
  | "follower"
  | "leader"
  /** Stopped in its tracks by SIGSTOP. */
  | "frozen"
  | "gone";

export type Signal = "SIGTERM" | "SIGKILL" | "SIGSTOP" | "SIGCONT";

/** One change of leader that the demo brought about, and how long nobody could act. */
export interface Measure {
  readonly what: string;
  readonly from: string;
  readonly to: string;
  readonly oldToken: string;
  readonly newToken: string;
  /** From the signal to the successor's election. */
  readonly ms: number;
  readonly remark: string;
}

interface Scene {
  readonly title: string;
  readonly lookFor: readonly string[];
  /** What the page says instead, where there are buttons. */
  readonly onPage?: readonly string[];
}

/** A write that the resource has judged by its token. */
interface WriteView {
  readonly at: number;
  readonly node: string;
  readonly token: string;
  readonly accepted: boolean;
  /** Highest token the resource has seen. */
  readonly highest: string;
  /** Sent on purpose after the term was over. */
  readonly late: boolean;
}

/** What happens on the stage. `at`: epoch milliseconds, with fraction. */
export type DemoEvent =
  | ({ readonly kind: "scene"; readonly at: number } & Scene)
  | { readonly kind: "added"; readonly at: number; readonly node: string }
  | { readonly kind: "removed"; readonly at: number; readonly node: string }
  | { readonly kind: "started"; readonly at: number; readonly node: string; readonly pid: number }
  | { readonly kind: "exited"; readonly at: number; readonly node: string; readonly how: string }
  | { readonly kind: "signalled"; readonly at: number; readonly node: string; readonly signal: Signal }
  /** Told to resign. */
  | { readonly kind: "dismissed"; readonly at: number; readonly node: string }
  /** Cut off from the store, or no longer. */
  | { readonly kind: "cut"; readonly at: number; readonly node: string; readonly on: boolean }
  /** A node reports: the very line it writes with `--log json`. */
  | { readonly kind: "said"; readonly at: number; readonly node: string; readonly line: Line }
  /** The store has extended its lease. */
  | {
      readonly kind: "lease";
      readonly at: number;
      readonly node: string;
      readonly token: string;
      /** How long it may act from `at` on. */
      readonly remainingMs: number;
      /** How much longer the others wait after that. */
      readonly marginMs: number;
    }
  /** How often it has called the store in the last second. */
  | { readonly kind: "ops"; readonly at: number; readonly node: string; readonly perSecond: number }
  | ({ readonly kind: "write" } & WriteView)
  | { readonly kind: "measured"; readonly at: number; readonly measure: Measure }
  | { readonly kind: "note"; readonly at: number; readonly text: string; readonly node?: string };

export interface NodeView {
  readonly name: string;
  readonly state: NodeState;
  readonly pid: number | undefined;
  /** Of its present term, while it leads. */
  readonly token: string | undefined;
  /** In leadership, but its renewals fail. */
  readonly jeopardy: boolean;
  /** It cannot reach the store. */
  readonly cut: boolean;
  readonly opsPerSecond: number;
}

export interface DemoState {
  readonly nodes: readonly NodeView[];
  readonly terms: Terms;
  /** What the resource has seen. */
  readonly accepted: number;
  readonly refused: number;
  readonly highest: string | undefined;
  /** The last ones, oldest first. */
  readonly writes: readonly WriteView[];
  readonly refusals: readonly WriteView[];
  readonly measures: readonly Measure[];
  readonly scene: Scene | undefined;
}

const FOLLOWING = { state: "follower", token: undefined } as const;
const MOST_WRITES = 24;
const MOST_REFUSALS = 6;

export function emptyStage(names: readonly string[]): DemoState {
  return {
    nodes: names.map(newcomer),
    terms: [],
    accepted: 0,
    refused: 0,
    highest: undefined,
    writes: [],
    refusals: [],
    measures: [],
    scene: undefined,
  };
}

/** The state after an event. Pure. */
export function advance(state: DemoState, event: DemoEvent): DemoState {
  switch (event.kind) {
    case "added":
      return { ...state, nodes: [...state.nodes, newcomer(event.node)] };
    case "removed":
      return { ...state, nodes: state.nodes.filter(({ name }) => name !== event.node) };
    case "started":
      return change(state, event.node, { ...newcomer(event.node), pid: event.pid });
    case "exited": {
      const gone = change(state, event.node, { ...newcomer(event.node), state: "gone" });
      return { ...gone, terms: died(state.terms, event.node, event.at) };
    }
    case "signalled":
      return afterSignal(state, event.node, event.signal, event.at);
    case "cut":
      return change(state, event.node, { cut: event.on });
    case "said":
      return afterLine(state, event.node, event.line);
    case "lease": {
      const deadline = event.at + event.remainingMs;
      return { ...state, terms: leased(state.terms, event.token, deadline, deadline + event.marginMs) };
    }
    case "ops":
      return change(state, event.node, { opsPerSecond: event.perSecond });
    case "write":
      return afterWrite(state, event);
    case "measured":
      return { ...state, measures: [...state.measures, event.measure] };
    case "scene": {
      const { kind: _kind, at: _at, ...scene } = event;
      return { ...state, scene };
    }
    case "dismissed":
    case "note":
      return state;
  }
}

/** The node leading, by its own word. */
export function leadingNode(state: DemoState): NodeView | undefined {
  return state.nodes.find((node) => node.state === "leader");
}

function newcomer(name: string): NodeView {
  return {
    name,
    state: "starting",
    pid: undefined,
    token: undefined,
    jeopardy: false,
    cut: false,
    opsPerSecond: 0,
  };
}

function afterSignal(state: DemoState, name: string, signal: Signal, at: number): DemoState {
  const stops = signal === "SIGSTOP" || signal === "SIGKILL";
  const next = stops ? { ...state, terms: stopped(state.terms, name, at) } : state;
  if (signal === "SIGSTOP") return change(next, name, { state: "frozen", opsPerSecond: 0 });
  const thawed =
    signal === "SIGCONT" && state.nodes.some((node) => node.name === name && node.state === "frozen");
  return thawed ? change(next, name, { state: "starting" }) : next;
}

function afterLine(state: DemoState, name: string, line: Line): DemoState {
  const { event, token, at } = line;
  switch (event) {
    case "elected": {
      const next = change(state, name, { state: "leader", token: token ?? undefined, jeopardy: false });
      return token === null ? next : { ...next, terms: began(state.terms, name, token, at) };
    }
    case "ended": {
      const next = change(state, name, { state: "follower", token: undefined, jeopardy: false });
      return token === null
        ? next
        : { ...next, terms: ended(state.terms, token, at, line.reason ?? "ended") };
    }
    case "jeopardy":
    case "safe":
      return change(state, name, { jeopardy: event === "jeopardy", ...(token !== null && { token }) });
    case "store":
    case "contained":
      return state;
    case "leader":
    case "work":
    case "error": {
      const node = state.nodes.find((view) => view.name === name);
      if (node?.state !== "starting" || event === "error") return state;
      // Woken up in time, it is still leading, and says so by nothing but its work.
      return change(state, name, token !== null && token === node.token ? { state: "leader" } : FOLLOWING);
    }
  }
}

function afterWrite(state: DemoState, event: DemoEvent & { readonly kind: "write" }): DemoState {
  const { kind: _, ...write } = event;
  const { accepted, highest } = write;
  const writes = [...state.writes, write].slice(-MOST_WRITES);
  if (accepted) return { ...state, writes, highest, accepted: state.accepted + 1 };
  const refusals = [...state.refusals, write].slice(-MOST_REFUSALS);
  return { ...state, writes, refusals, highest, refused: state.refused + 1 };
}

function change(state: DemoState, name: string, news: Partial<NodeView>): DemoState {
  const nodes = state.nodes.map((node) => (node.name === name ? { ...node, ...news } : node));
  return { ...state, nodes };
}
