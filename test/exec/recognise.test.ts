/** By what a process is recognised, with a /proc that shows what is rare and short. */
import { beforeEach, expect, it, vi } from "vitest";
import { newLimitMark } from "../../src/exec/limit-mark.js";
import type { Stat, Unread } from "../../src/exec/procfs.js";
import { recognise } from "../../src/exec/recognise.js";

const shown: { stat: Stat | Unread; limit: bigint | null | Unread; marks: readonly string[] | Unread } = {
  stat: "gone",
  limit: null,
  marks: [],
};
const { probe } = vi.hoisted(() => ({ probe: vi.fn() }));
vi.mock("../../src/exec/procfs.js", () => ({
  hidesProcesses: () => false,
  readStat: () => shown.stat,
  readLocksLimit: () => shown.limit,
  readMarks: () => shown.marks,
}));
vi.mock("../../src/exec/signals.js", () => ({ probe }));

const LIVING: Stat = { dead: false, parent: 1, pgrp: 7, session: 7, started: 100 };
const limit = newLimitMark(null)!;

function verdictOf(traces: { limit: bigint | undefined }): string {
  return recognise(7, { mark: "mark", ...traces }, 50, () => false).ownership;
}

beforeEach(() => {
  shown.stat = LIVING;
  probe.mockReset();
});

it("one that is ending shows no limit and no environment any more: it is gone, not foreign, and may have a successor", () => {
  shown.limit = "gone";
  shown.marks = [];
  expect(verdictOf({ limit })).toBe("gone");
});

it("the kernel is not asked about numbers that nobody has", () => {
  shown.stat = "gone";
  expect(verdictOf({ limit })).toBe("gone");
  expect(probe).not.toHaveBeenCalled();
});

it("without a limit, one that may not be examined is foreign if another user runs it, and unknown if ours does", () => {
  shown.marks = "denied";
  probe.mockReturnValueOnce("forbidden");
  expect(verdictOf({ limit: undefined })).toBe("foreign");
  probe.mockReturnValueOnce("exists");
  expect(verdictOf({ limit: undefined })).toBe("unknown");
});
