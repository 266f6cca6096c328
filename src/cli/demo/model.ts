/**
 * What the demo is about, apart from how it is shown: events, and the state they
 * add up to. Plain data, ready for JSON: a terminal prints it, a page can draw it.
 */
import type { Line } from "../lines.js";

type NodeState =
  /** Not heard of yet. */
  | "starting"
  | "follower"
  | "leader"
  /** Stopped in its tracks by SIGSTOP. */
  | "frozen"
  | "gone";

export type Signal = "SIGTERM" | "SIGKILL" | "SIGSTOP" | "SIGCONT";

/** One change of office that the demo brought about, and how long nobody could act. */
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

/** What happens on the stage. `at`: epoch milliseconds, with fraction. */
export type DemoEvent =
  | {
      readonly kind: "scene";
      readonly at: number;
      readonly title: string;
      readonly lookFor: readonly string[];
    }
  | { readonly kind: "started"; readonly at: number; readonly node: string; readonly pid: number }
  | { readonly kind: "exited"; readonly at: number; readonly node: string; readonly how: string }
  | { readonly kind: "signalled"; readonly at: number; readonly node: string; readonly signal: Signal }
  /** A node reports: the very line it writes with `--log json`. */
  | { readonly kind: "said"; readonly at: number; readonly node: string; readonly line: Line }
  /** The resource has judged a write by its token. */
  | {
      readonly kind: "write";
      readonly at: number;
      readonly node: string;
      readonly token: string;
      readonly accepted: boolean;
      /** Highest token the resource has seen. */
      readonly highest: string;
      /** Sent on purpose after the term was over. */
      readonly late: boolean;
    }
  | { readonly kind: "measured"; readonly at: number; readonly measure: Measure }
  | { readonly kind: "note"; readonly at: number; readonly text: string; readonly node?: string };

export interface NodeView {
  readonly name: string;
  readonly state: NodeState;
  readonly pid: number | undefined;
  /** Of its present term, while it leads. */
  readonly token: string | undefined;
}

export interface DemoState {
  readonly nodes: readonly NodeView[];
  /** What the resource has seen. */
  readonly accepted: number;
  readonly refused: number;
  readonly highest: string | undefined;
  readonly measures: readonly Measure[];
}

export function emptyStage(names: readonly string[]): DemoState {
  const nodes = names.map((name): NodeView => ({
    name,
    state: "starting",
    pid: undefined,
    token: undefined,
  }));
  return { nodes, accepted: 0, refused: 0, highest: undefined, measures: [] };
}

/** The state after an event. Pure. */
export function advance(state: DemoState, event: DemoEvent): DemoState {
  switch (event.kind) {
    case "started":
      return change(state, event.node, { state: "starting", pid: event.pid, token: undefined });
    case "exited":
      return change(state, event.node, { state: "gone", pid: undefined, token: undefined });
    case "signalled":
      return afterSignal(state, event.node, event.signal);
    case "said":
      return afterLine(state, event.node, event.line);
    case "write": {
      const { accepted, highest } = event;
      return accepted
        ? { ...state, accepted: state.accepted + 1, highest }
        : { ...state, refused: state.refused + 1, highest };
    }
    case "measured":
      return { ...state, measures: [...state.measures, event.measure] };
    case "scene":
    case "note":
      return state;
  }
}

/** The node in office, by its own word. */
export function leaderOf(state: DemoState): NodeView | undefined {
  return state.nodes.find((node) => node.state === "leader");
}

function afterSignal(state: DemoState, name: string, signal: Signal): DemoState {
  if (signal === "SIGSTOP") return change(state, name, { state: "frozen" });
  const thawed =
    signal === "SIGCONT" && state.nodes.some((node) => node.name === name && node.state === "frozen");
  return thawed ? change(state, name, { state: "starting" }) : state;
}

function afterLine(state: DemoState, name: string, line: Line): DemoState {
  const { event, token } = line;
  if (event === "elected") return change(state, name, { state: "leader", token: token ?? undefined });
  if (event === "ended") return change(state, name, { state: "follower", token: undefined });
  const fresh = state.nodes.some((node) => node.name === name && node.state === "starting");
  return event === "leader" && fresh ? change(state, name, { state: "follower", token: undefined }) : state;
}

function change(state: DemoState, name: string, news: Partial<NodeView>): DemoState {
  const nodes = state.nodes.map((node) => (node.name === name ? { ...node, ...news } : node));
  return { ...state, nodes };
}
