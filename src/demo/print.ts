/** The demo in a terminal: a line per event, each node in its colour. */
import type { Line } from "../terminal/lines.js";
import type { Colour, Out, Part } from "../terminal/output.js";
import { clockTime } from "../terminal/output.js";
import type { DemoEvent, DemoState, Measure, NodeView } from "./model.js";

const COLOURS: readonly Colour[] = ["cyan", "magenta", "yellow", "green", "blue", "red"];
const ICONS: Readonly<Record<NodeView["state"], string>> = {
  starting: "⏳",
  follower: "👥",
  leader: "👑",
  frozen: "🧊",
  gone: "💀",
};

export class Printer {
  readonly #out: Out;
  #printed = "";

  constructor(out: Out) {
    this.#out = out;
  }

  show(event: DemoEvent, state: DemoState): void {
    const out = this.#out;
    switch (event.kind) {
      case "scene":
        out.line("");
        out.line({ colour: "bold", text: `── ${event.title}` });
        for (const hint of event.lookFor) out.line(`   ${hint}`);
        out.line("");
        return;
      case "measured":
        out.line("   ", { colour: "bold", text: measured(event.measure) });
        return;
      case "note":
        if (event.node === undefined) out.line(`   ${event.text}`);
        else out.line(...this.#text(event.at, event.node, event.text));
        return;
      case "lease":
      case "ops":
        return; // for the page
      case "added":
      case "removed":
      case "started":
      case "exited":
      case "signalled":
      case "dismissed":
      case "cut":
      case "said":
      case "write":
        // Why it fails to reach the store was said when it was cut off.
        if (!(event.kind === "said" && event.line.event === "error" && isCut(state, event.node)))
          this.#tell(event);
        this.#printStates(state);
    }
  }

  /** All that was measured, at the end. */
  summary(state: DemoState): void {
    const out = this.#out;
    out.line("");
    out.line({ colour: "bold", text: "── Measured" });
    for (const measure of state.measures) out.line(`   ${measured(measure)}`);
    out.line(`   writes: ${state.accepted} accepted, ${state.refused} refused because of an old token`);
    out.line("");
  }

  #tell(event: DemoEvent & { readonly node?: string }): void {
    const text = wording(event);
    if (text !== undefined && event.node !== undefined)
      this.#out.line(...this.#text(event.at, event.node, text));
  }

  #text(at: number, node: string, text: string): Part[] {
    // By its number, so that it keeps its colour when others leave.
    const index = Number(/[0-9]+$/.exec(node)?.[0] ?? 1) - 1;
    const name = { colour: COLOURS[index % COLOURS.length] ?? "cyan", text: `[${node}]` } as const;
    return [{ colour: "grey", text: clockTime(at) }, "  ", name, ` ${text}`];
  }

  /** The state of each candidate, whenever one changes. */
  #printStates(state: DemoState): void {
    const states = state.nodes.map(({ name, state: s }) => `${ICONS[s]} ${name}`).join("   ");
    if (states === this.#printed) return;
    this.#printed = states;
    this.#out.line(`              ${states}`);
  }
}

function isCut(state: DemoState, node: string): boolean {
  return state.nodes.some(({ name, cut }) => name === node && cut);
}

function measured({ what, from, to, ms, oldToken, newToken, remark }: Measure): string {
  const took = ms < 10 ? ms.toFixed(1) : String(Math.round(ms));
  return `⏱ ${what}: ${from} → ${to} in ${took} ms, token ${oldToken} → ${newToken}; ${remark}`;
}

function wording(event: DemoEvent): string | undefined {
  switch (event.kind) {
    case "added":
      return "+ joins";
    case "removed":
      return "− has left";
    case "dismissed":
      return "✉ asked to resign";
    case "cut":
      return event.on ? "✂ cut off from the store" : "⚕ reaches the store again";
    case "lease":
    case "ops":
      return undefined;
    case "started":
      return `▶ started as process ${event.pid}`;
    case "exited":
      return `■ ended: ${event.how}`;
    case "signalled":
      return `⚡ ${event.signal} sent to it`;
    case "said":
      return spoken(event.node, event.line);
    case "write":
      if (event.accepted) return `✎ ledger accepts its write, token ${event.token}`;
      return `✋ ledger REFUSES its ${event.late ? "late " : ""}write: token ${event.token} is older than ${event.highest}`;
    case "scene":
    case "measured":
    case "note":
      return undefined;
  }
}

function spoken(node: string, line: Line): string | undefined {
  switch (line.event) {
    case "elected":
      return `👑 elected, token ${line.token}`;
    case "ended":
      return line.reason === "resigned" || line.reason === "closed"
        ? `👋 leadership given up, token ${line.token}`
        : `💔 knows that its term is over (${line.reason}), token ${line.token}`;
    case "jeopardy":
      return `🔥 in jeopardy: ${line.reason}`;
    case "safe":
      return "💚 safe again";
    case "error":
      return `❌ ${line.reason}`;
    case "leader":
      return following(node, line);
    case "work": // the ledger tells it
    case "store":
    case "contained":
      return undefined;
  }
}

function following(node: string, line: Line): string | undefined {
  // Without the random part that makes it unique.
  const leader = line.candidate?.replace(/-[0-9a-f]+$/, "");
  return leader === undefined || leader === node ? undefined : `👥 follows ${leader}, token ${line.token}`;
}
