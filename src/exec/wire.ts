/** What the wrapper and its watchdog say to each other. Both run the same version; still, nothing is believed unread. */
import { constants } from "node:os";
import { CONTAINMENTS } from "./containment.js";
import type { ContainmentKind } from "./containment.js";
import type { ContainmentMethod } from "./containment-method.js";

/** Where the watchdog, and it alone, holds the pipe of the last will; its third argument says that it does. */
export const PIPE_FD = 4;

/** Until when the command may live, by clocks that all processes of a machine share. */
export interface KillDeadline {
  /** CLOCK_MONOTONIC in nanoseconds, decimal: at this instant the command is killed. */
  readonly until: string;
  /** The clocks when that was computed: the machine may sleep between then and now. */
  readonly at: string;
  readonly wall: number;
  readonly boot: number;
}

export interface Order {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly contain: ContainmentKind;
  /** Found in the environment of every process of the command. */
  readonly mark: string;
  /** The limit by which its processes are known (limit-mark.ts), decimal. */
  readonly limit: string | null;
  /** Directory of the cgroup to be made for it. */
  readonly cgroup: string | null;
  /** SIGTERM comes this long before SIGKILL. */
  readonly graceMs: number;
  /** SIGKILL comes this long before the deadline, and up to `slackMs` more where killing takes longer. */
  readonly reserveMs: number;
  readonly slackMs: number;
  /** What the holder keeps clear of the end of its lease: how far clocks may drift apart unsuspected depends on it. */
  readonly marginMs: number;
}

/** Every message carries the number of the run it is about: a late one must not hit the next run. */
export type ToWatchdog =
  | { readonly kind: "start"; readonly run: number; readonly order: Order; readonly deadline: KillDeadline }
  | { readonly kind: "extend"; readonly run: number; readonly deadline: KillDeadline }
  | { readonly kind: "signal"; readonly run: number; readonly signal: NodeJS.Signals }
  | { readonly kind: "kill"; readonly run: number };

/** Why the command was made to stop. `null`: it was not, it ended by itself. */
export type Stopped = "jeopardy" | "lost" | null;

export type FromWatchdog =
  | {
      readonly kind: "ready";
      /** What was asked for with `--contain` cannot be had: the words for it. */
      readonly failed: string | null;
      readonly method: ContainmentMethod | null;
      /** Process id of the backstop. */
      readonly backstop: number | null;
    }
  | { readonly kind: "started"; readonly run: number; readonly pid: number }
  /** An extension has been heard: a watchdog that says nothing guards nothing. */
  | { readonly kind: "heard"; readonly run: number }
  /** No renewal came in time: SIGTERM has been sent, SIGKILL follows. */
  | { readonly kind: "warned"; readonly run: number }
  /** The command has ended, but these may be of it, and may not be examined. Leadership is kept until they end. */
  | { readonly kind: "unknown"; readonly run: number; readonly processes: readonly string[] }
  /** The command has ended and nothing of it lives. */
  | {
      readonly kind: "over";
      readonly run: number;
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
      /** It could not be started: the name of the error. */
      readonly failed: string | null;
      readonly stopped: Stopped;
    };

export function isToWatchdog(message: unknown): message is ToWatchdog {
  if (!isObject(message) || !isRun(message["run"])) return false;
  switch (message["kind"]) {
    case "start":
      return isOrder(message["order"]) && isKillDeadline(message["deadline"]);
    case "extend":
      return isKillDeadline(message["deadline"]);
    case "signal":
      return isSignal(message["signal"]);
    case "kill":
      return true;
    default:
      return false;
  }
}

export function isFromWatchdog(message: unknown): message is FromWatchdog {
  if (!isObject(message)) return false;
  const { kind, run, pid, code, signal, failed, stopped, processes } = message;
  if (kind === "ready") return isReady(message);
  if (!isRun(run)) return false;
  if (kind === "started") return Number.isSafeInteger(pid) && Number(pid) > 1;
  if (kind === "heard" || kind === "warned") return true;
  if (kind === "unknown") return isStrings(processes);
  return (
    kind === "over" &&
    (code === null || Number.isSafeInteger(code)) &&
    (signal === null || isSignal(signal)) &&
    (failed === null || typeof failed === "string") &&
    (stopped === null || stopped === "jeopardy" || stopped === "lost")
  );
}

function isReady({ failed, method, backstop }: Record<string, unknown>): boolean {
  return (
    isText(failed) &&
    (method === null || isContainmentMethod(method)) &&
    (backstop === null || (Number.isSafeInteger(backstop) && Number(backstop) > 1))
  );
}

function isContainmentMethod(value: unknown): value is ContainmentMethod {
  if (!isObject(value)) return false;
  const { kind, cgroup, limits, why } = value;
  return isKind(kind) && isText(cgroup) && isText(why) && typeof limits === "boolean";
}

function isOrder(value: unknown): value is Order {
  if (!isObject(value)) return false;
  const { command, args, env, contain, mark, limit, cgroup } = value;
  const times = [value["graceMs"], value["reserveMs"], value["slackMs"], value["marginMs"]];
  return (
    typeof command === "string" &&
    isStrings(args) &&
    isObject(env) &&
    isStrings(Object.values(env)) &&
    isKind(contain) &&
    typeof mark === "string" &&
    mark !== "" &&
    (limit === null || (typeof limit === "string" && /^[0-9]{1,20}$/.test(limit))) &&
    (contain === "cgroup" ? typeof cgroup === "string" && cgroup.startsWith("/") : cgroup === null) &&
    times.every(Number.isFinite)
  );
}

function isKind(value: unknown): value is ContainmentKind {
  return CONTAINMENTS.some((kind) => kind === value);
}

function isText(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((word) => typeof word === "string");
}

function isKillDeadline(value: unknown): value is KillDeadline {
  if (!isObject(value)) return false;
  const { until, at, wall, boot } = value;
  return isNanoseconds(until) && isNanoseconds(at) && Number.isFinite(wall) && Number.isFinite(boot);
}

function isNanoseconds(value: unknown): boolean {
  return typeof value === "string" && /^-?[0-9]{1,25}$/.test(value);
}

function isSignal(value: unknown): value is NodeJS.Signals {
  return typeof value === "string" && Object.hasOwn(constants.signals, value);
}

function isRun(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
