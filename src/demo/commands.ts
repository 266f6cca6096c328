/** What the page may do to the nodes and to the dialer, and when that makes sense. */
import type { Dialer } from "./dialer/dialer.js";
import { POSSIBLE } from "./dialer/model.js";
import type { NodeView } from "./model.js";
import { MOST_NODES } from "./choices.js";
import type { Stage } from "./stage.js";

interface Action {
  /** Why not now; `undefined`: it can be done. */
  readonly refusal: (node: NodeView, stage: Stage) => string | undefined;
  readonly run: (stage: Stage, name: string) => void;
}

const alive = ({ name, state }: NodeView): string | undefined =>
  state === "gone" ? `${name} is dead: start it first` : undefined;

const awake = (node: NodeView): string | undefined =>
  node.state === "frozen" ? `${node.name} is frozen: thaw it first` : alive(node);

const ACTIONS: Readonly<Record<string, Action>> = {
  resign: {
    refusal: (node) => (node.state === "leader" ? undefined : `${node.name} does not lead`),
    run: (stage, name) => stage.dismiss(name),
  },
  kill: { refusal: alive, run: (stage, name) => stage.kill(name) },
  start: {
    refusal: ({ name, state }) => (state === "gone" ? undefined : `${name} is running`),
    run: (stage, name) => stage.start(name),
  },
  freeze: { refusal: awake, run: (stage, name) => void stage.signal(name, "SIGSTOP") },
  thaw: {
    refusal: ({ name, state }) => (state === "frozen" ? undefined : `${name} is not frozen`),
    run: (stage, name) => void stage.signal(name, "SIGCONT"),
  },
  cut: {
    refusal: (node) => (node.cut ? `${node.name} is cut off already` : alive(node)),
    run: (stage, name) => stage.cut(name, true),
  },
  heal: {
    refusal: ({ name, cut }) => (cut ? undefined : `${name} is not cut off`),
    run: (stage, name) => stage.cut(name, false),
  },
  remove: {
    refusal: (_, stage) => (stage.state.nodes.length > 1 ? undefined : "the last node stays"),
    run: (stage, name) => stage.remove(name),
  },
};

export type CommandResult =
  | { readonly done: true }
  | { readonly done: false; readonly status: 404 | 409; readonly reason: string };

export function addNode(stage: Stage): CommandResult {
  if (stage.state.nodes.length >= MOST_NODES)
    return { done: false, status: 409, reason: `at most ${MOST_NODES} nodes` };
  stage.add();
  return { done: true };
}

export function command(stage: Stage, name: string, action: string): CommandResult {
  const node = stage.state.nodes.find((view) => view.name === name);
  if (node === undefined) return { done: false, status: 404, reason: "no such node" };
  const known = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (known === undefined) return { done: false, status: 404, reason: "no such action" };
  const reason = known.refusal(node, stage);
  if (reason !== undefined) return { done: false, status: 409, reason };
  known.run(stage, name);
  return { done: true };
}

/** A day for one bad moment, or for each of them. */
export function startDialer(dialer: Dialer, which: string): CommandResult {
  const moments = which === "week" ? POSSIBLE : POSSIBLE.filter((moment) => moment === which);
  if (moments.length === 0) return { done: false, status: 404, reason: "no such moment" };
  if (dialer.busy) return { done: false, status: 409, reason: "the calls of these days are not over yet" };
  // What goes wrong is in its state, which the page shows.
  void dialer.play(moments).catch(() => {});
  return { done: true };
}
