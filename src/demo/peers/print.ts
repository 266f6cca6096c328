/** Peers in a terminal: a line per event, each peer in its colour. */
import type { Colour, Out } from "../../terminal/output.js";
import { clockTime } from "../../terminal/output.js";
import { preciseNow } from "../../terminal/lines.js";
import type { Algorithm } from "../choices.js";
import type { Note, PeersState } from "./model.js";
import { leadersOf } from "./model.js";

const COLOURS: readonly Colour[] = ["cyan", "magenta", "yellow", "green", "blue", "grey"];
const SIGNS: Readonly<Record<Note["weight"], string>> = { plain: "", leader: "👑 ", bad: "‼ " };

export class PeersPrinter {
  readonly #out: Out;
  readonly #algorithm: Algorithm;
  #printed = "";

  constructor(out: Out, algorithm: Algorithm) {
    this.#out = out;
    this.#algorithm = algorithm;
  }

  scene(title: string, lookFor: readonly string[]): void {
    this.#out.line("");
    this.#out.line({ colour: "bold", text: `── ${title}` });
    for (const hint of lookFor) this.#out.line(`   ${hint}`);
    this.#out.line("");
  }

  measured(text: string): void {
    this.#out.line("   ", { colour: "bold", text: `⏱ ${text}` });
  }

  show({ at, node, text, weight }: Note, state: PeersState): void {
    const index = Number(/[0-9]+$/.exec(node ?? "")?.[0] ?? 1) - 1;
    const colour = weight === "bad" ? "red" : (COLOURS[index % COLOURS.length] ?? "cyan");
    const name = { colour, text: node === null ? "[all]" : `[${node}]` } as const;
    const what = weight === "bad" ? { colour, text: `${SIGNS.bad}${text}` } : `${SIGNS[weight]}${text}`;
    this.#out.line({ colour: "grey", text: clockTime(at) }, "  ", name, " ", what);
    this.#printStates(state);
  }

  /** All of it, at the end. */
  summary({ contests }: PeersState): void {
    const contest = contests.find(({ algorithm }) => algorithm === this.#algorithm);
    if (contest === undefined) return;
    this.#out.line("");
    this.#out.line({ colour: "bold", text: "── Measured" });
    const { changes, twoMs } = contest;
    this.#out.line(`   changes of leader: ${changes}; two leaders at once: ${duration(twoMs)}`);
    this.#out.line("");
  }

  /** Who does what, whenever that changes. */
  #printStates({ peers, contests }: PeersState): void {
    const terms = contests.find(({ algorithm }) => algorithm === this.#algorithm)?.terms ?? [];
    const leaders = leadersOf(terms, preciseNow());
    const signs = { starting: "⏳", up: "👥", frozen: "🧊", dead: "💀" } as const;
    const sign = (name: string, state: keyof typeof signs): string =>
      leaders.includes(name) && state === "up" ? "👑" : signs[state];
    const states = peers.map(({ name, state }) => `${sign(name, state)} ${name}`).join("   ");
    if (states === this.#printed) return;
    this.#printed = states;
    this.#out.line(`              ${states}`);
  }
}

function duration(ms: number): string {
  return ms === 0 ? "never" : ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
