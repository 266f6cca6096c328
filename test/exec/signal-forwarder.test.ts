/** Signals to the wrapper: to the command while there is one, and otherwise the end of the waiting. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { SignalForwarder } from "../../src/exec/signal-forwarder.js";

let forwarder: SignalForwarder;
let passed: string[];
const target = (signal: string): void => void passed.push(signal);
const send = (signal: NodeJS.Signals): boolean => process.emit(signal, signal);

beforeEach(() => {
  forwarder = new SignalForwarder();
  passed = [];
});
afterEach(() => forwarder[Symbol.dispose]());

it("go to the command until it has ended; after that they end the waiting", () => {
  forwarder.attach(target);
  send("SIGUSR1");
  forwarder.detach(null);
  send("SIGUSR1");
  expect([passed, forwarder.status, forwarder.signal.aborted]).toEqual([["SIGUSR1"], undefined, false]);
  send("SIGTERM");
  expect([passed, forwarder.status, forwarder.signal.aborted]).toEqual([["SIGUSR1"], 143, true]);
});

it("that ask for an end are remembered while the command takes its time", () => {
  forwarder.attach(target);
  send("SIGINT");
  send("SIGTERM");
  expect([passed, forwarder.status, forwarder.signal.aborted]).toEqual([["SIGINT", "SIGTERM"], 130, false]);
});

it("SIGHUP is an end only if the command died of it", () => {
  forwarder.attach(target);
  send("SIGHUP");
  forwarder.detach(null);
  expect(forwarder.status).toBeUndefined();
  forwarder.attach(target);
  send("SIGHUP");
  forwarder.detach("SIGHUP");
  expect([forwarder.status, forwarder.signal.aborted]).toEqual([129, true]);
});
