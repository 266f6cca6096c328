/** Signals belong to the program, and this is the program. */
import { sharedController } from "../kit/wait.js";
import { Stopped } from "../terminal/failure.js";
import { nobodyReads } from "../terminal/writing.js";

export interface Stop extends Disposable {
  /** Aborts at the first signal, or when nobody reads our output any more. */
  readonly signal: AbortSignal;
}

const NUMBERS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const;
type EndingSignal = keyof typeof NUMBERS;

/** What a candidate does at the first signal: one that does not lead has no work to stop. */
export function stoppingText(leading: boolean): string {
  return leading ? "stopping the work and resigning" : "no longer campaigning";
}

/** The first signal stops in good order, the second exits at once. */
export function stopOnSignals(
  signals: readonly EndingSignal[] = ["SIGINT", "SIGTERM"],
  told: (signal: EndingSignal) => void = () => {},
): Stop {
  // Every election of a store may wait for it at once.
  const controller = sharedController();
  const handle = (signal: EndingSignal): void => {
    if (controller.signal.aborted) process.exit(128 + NUMBERS[signal]);
    told(signal);
    controller.abort(new Stopped(signal, NUMBERS[signal]));
  };
  // Any other fault passes (a full disk): an election does not end because its log cannot be written.
  const broken = (error: Error): void => {
    if (nobodyReads(error)) controller.abort(new Error("nobody reads the output"));
  };
  for (const signal of signals) process.on(signal, handle);
  process.stdout.on("error", broken);
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      for (const signal of signals) process.off(signal, handle);
      process.stdout.off("error", broken);
    },
  };
}
