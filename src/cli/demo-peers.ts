/** `conclave demo --peers raft|bully`: elections with no server, in the terminal and on the page. */
import { onAbort } from "../kit/wait.js";
import type { DemoPage } from "../demo/page.js";
import type { Algorithm } from "../demo/choices.js";
import type { Size } from "../demo/peers/model.js";
import { isSize, SIZES } from "../demo/peers/model.js";
import { Peers } from "../demo/peers/peers.js";
import { Play } from "../demo/peers/play.js";
import { PeersPrinter } from "../demo/peers/print.js";
import { formatDuration } from "../terminal/duration.js";
import { EXIT, UsageError } from "../terminal/failure.js";
import type { Out } from "../terminal/output.js";
import { stopOnSignals } from "./signals.js";

export interface PeersDemoOptions {
  readonly algorithm: Algorithm;
  readonly count: number;
  readonly ttlMs: number;
  readonly once: boolean;
  readonly out: Out;
  /** Serves the page, if it is wanted and can be had. `intervened`: someone has pressed a button. */
  readonly openPage: (peers: Peers, intervened: () => void) => Promise<DemoPage | undefined>;
}

export async function demoPeers(options: PeersDemoOptions): Promise<number> {
  const { algorithm, ttlMs, out } = options;
  const size = sizeOf(options.count);
  using stop = stopOnSignals(["SIGINT", "SIGTERM", "SIGHUP"], () => {
    out.line("");
    out.line("stopping…");
  });
  const printer = new PeersPrinter(out, algorithm);
  const peers = new Peers({ ttlMs, algorithms: [algorithm] });
  const off = peers.on((note) => {
    if (note !== undefined) printer.show(note, peers.state);
  });
  /** Ends the play: someone else directs now. */
  const yielded = new AbortController();
  onAbort(stop.signal, () => yielded.abort(stop.signal.reason));
  const byHand = (): boolean => yielded.signal.aborted && !stop.signal.aborted;
  let page: DemoPage | undefined;
  try {
    out.line(`peers on this machine, with no server; ttl ${formatDuration(ttlMs)}`);
    page = await options.openPage(peers, () => yielded.abort(new Error("someone else directs")));
    const play = new Play({ peers, algorithm, size, ttlMs, signal: yielded.signal, ...told(printer) });
    await play.run().catch((error: unknown) => {
      if (!byHand()) throw error;
    });
    printer.summary(peers.state);
    if (!options.once || byHand()) {
      printer.scene("Your turn", yourTurn(peers));
      await new Promise<void>((resolve) => onAbort(stop.signal, resolve));
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    off();
    await page?.close();
    await peers[Symbol.asyncDispose]();
  }
  out.line("all processes have ended, the directory is removed");
  return EXIT.ok;
}

function told(printer: PeersPrinter): Pick<ConstructorParameters<typeof Play>[0], "scene" | "measured"> {
  return {
    scene: (title, lookFor) => printer.scene(title, lookFor),
    measured: (text) => printer.measured(text),
  };
}

function sizeOf(count: number): Size {
  if (isSize(count)) return count;
  throw new UsageError(
    `--nodes is ${count}; with --peers write ${SIZES.join(", ")}: with an even number one more failure stops an election, not one less`,
  );
}

function yourTurn({ state }: Peers): string[] {
  const processes = state.peers.map(({ name, pid }) => `${name} is process ${pid}`).join(", ");
  return [
    `${processes}.`,
    "The page has buttons to kill, freeze and wipe them, and to cut any link in either direction. Ctrl-C ends the demo.",
  ];
}
