import { describe, expect, test } from "vitest";
import type { Line } from "../../src/terminal/lines.js";
import { type LogFormat, openLog } from "../../src/terminal/log.js";
import { output, render } from "../../src/terminal/output.js";

function printed(format: LogFormat, lines: readonly Line[]): string[] {
  const said: string[] = [];
  const log = openLog(format, { line: (...parts) => void said.push(render(parts, false)) }, "jobs");
  for (const line of lines) log.line(line);
  return said;
}

const failed = (at: number, reason: string): Line => ({
  event: "error",
  at,
  election: "jobs",
  candidate: "a-1",
  token: null,
  reason,
});
const vacant = (at: number): Line => ({
  event: "leader",
  at,
  election: "jobs",
  candidate: null,
  token: null,
});

test("what a leader publishes is told, if it says more than its name", () => {
  const leads = (value: string): Line => ({ ...vacant(0), candidate: "7f", token: "3", value });
  expect(printed("text", [leads("web-2")])[0]).toMatch(/7f leads with token 3, value "web-2"$/);
  for (const silent of ["7f", ""])
    expect(printed("text", [leads(silent)])[0]).toMatch(/7f leads with token 3$/);
});

test("the status says why it is not known who leads", () => {
  const said: string[] = [];
  const log = openLog("text", { line: (...parts) => void said.push(render(parts, false)) }, "jobs");
  const unknown = { at: 0, leading: false, token: null, leader: undefined };
  log.status(unknown);
  log.status({ ...unknown, trouble: "no such user" });
  expect(said[0]).toMatch(/not known yet who leads$/);
  expect(said[1]).toMatch(/not known yet who leads: no such user$/);
});

describe("a store that is away", () => {
  const away = [failed(0, "away"), failed(90, "away"), failed(400, "away"), failed(500, "no such user")];

  test("is told to people once in a while, and anew when something else was heard of", () => {
    expect(printed("text", away)).toHaveLength(2);
    expect(printed("text", [failed(0, "away"), failed(9_999, "away"), failed(10_001, "away")])).toHaveLength(
      2,
    );
    expect(printed("text", [failed(0, "away"), vacant(10), failed(20, "away")])).toHaveLength(3);
  });

  test("is told to machines every time", () => {
    expect(printed("json", away)).toHaveLength(4);
  });
});

test("lines for a reader that does not read are dropped, not kept", () => {
  const written: string[] = [];
  const unread = { writableLength: 0, isTTY: false, write: (text: string) => written.push(text) > 0 };
  const out = output(unread);
  out.line("first");
  unread.writableLength = 5_000_000;
  out.line("second");
  expect(written).toEqual(["first\n"]);
});
