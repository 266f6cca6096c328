/** What `conclave demo` does: the stage, the director and the page put together. */
import { ALGORITHMS } from "../demo/choices.js";
import { Dialer } from "../demo/dialer/dialer.js";
import { Director } from "../demo/director.js";
import { openDemoPage } from "../demo/page.js";
import type { DemoPage, DemoPageOptions } from "../demo/page.js";
import { Peers } from "../demo/peers/peers.js";
import { Printer } from "../demo/print.js";
import { Stage } from "../demo/stage.js";
import { formatDuration } from "../terminal/duration.js";
import { EXIT, failureLine } from "../terminal/failure.js";
import { output } from "../terminal/output.js";
import type { Out } from "../terminal/output.js";
import { demoPeers } from "./demo-peers.js";
import type { DemoOptions } from "./demo.js";
import { stopOnSignals } from "./signals.js";

const WORK_EVERY_MS = 1_000;

/** A machine where no page can be served still gets the demo in the terminal. */
async function openPage(
  { listen, ui, leaseDuration }: DemoOptions,
  shown: Omit<DemoPageOptions, "ttlMs" | "address">,
  out: Out,
): Promise<DemoPage | undefined> {
  if (ui === false) return undefined;
  try {
    const page = await openDemoPage({ ...shown, ttlMs: leaseDuration, address: listen });
    out.line(`page: ${page.url}`);
    return page;
  } catch (error) {
    if (ui === true) throw error;
    out.line(`no page: ${failureLine(error)}`);
    return undefined;
  }
}

/** The play, then whatever the audience wants. Returns the exit code. */
export async function demo(options: DemoOptions): Promise<number> {
  const out = output();
  if (options.peers !== undefined)
    return demoPeers({
      algorithm: options.peers,
      count: options.nodes,
      ttlMs: options.leaseDuration,
      once: options.once === true,
      out,
      openPage: (peers, intervened) =>
        openPage(options, { stage: undefined, dialer: undefined, peers, intervened }, out),
    });
  const names = Array.from({ length: options.nodes }, (_, index) => `node${index + 1}`);
  const { leaseDuration: ttlMs } = options;
  using stop = stopOnSignals(["SIGINT", "SIGTERM", "SIGHUP"], () => {
    out.line("");
    out.line("stopping…");
  });
  const printer = new Printer(out);
  const stage = await Stage.open({
    names,
    ttlMs,
    retryMs: Math.round(ttlMs / 5),
    workEveryMs: WORK_EVERY_MS,
  });
  const off = stage.on((event, state) => printer.show(event, state));
  const director = new Director({ stage, names, ttlMs, signal: stop.signal });
  const dialer = new Dialer();
  const peers = new Peers({ ttlMs, algorithms: ALGORITHMS });
  const shown = { stage, dialer, peers, intervened: () => director.yield() };
  let page: DemoPage | undefined;
  try {
    out.line(`elections live in ${stage.directory} while the demo runs; ttl ${formatDuration(ttlMs)}`);
    page = await openPage(options, shown, out);
    await director.play();
    printer.summary(stage.state);
    if (options.once !== true || director.yielded) await director.goOn(page?.url);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    off();
    await page?.close();
    await peers[Symbol.asyncDispose]();
    await dialer[Symbol.asyncDispose]();
    await stage[Symbol.asyncDispose]();
  }
  out.line("all processes have ended, the directory is removed");
  return EXIT.ok;
}
