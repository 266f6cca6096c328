/** Two ways to print the same lines. */
import type { Leader } from "../seam/backend.js";
import type { Line, LineEvent } from "./lines.js";
import type { Colour, Out } from "./output.js";
import { clockTime } from "./output.js";

interface Status {
  readonly at: number;
  readonly leading: boolean;
  readonly token: bigint | null;
  /** `undefined`: not known (yet). */
  readonly leader: Leader | null | undefined;
  /** Why it is not known. */
  readonly trouble?: string | undefined;
}

export interface Log {
  line(line: Line): void;
  /** Once a second; machines do not need it. */
  status(status: Status): void;
  /** A remark for people. */
  note(text: string): void;
}

export type LogFormat = "json" | "text";

/** `id`: shown at the start of each line. `self`: the candidate that reports. */
export function openLog(format: LogFormat, out: Out, id: string, self?: string): Log {
  return format === "json" ? jsonLog(out) : textLog(out, id, self);
}

function jsonLog(out: Out): Log {
  return {
    line: (line) => out.line(JSON.stringify(line)),
    status: () => {},
    note: () => {},
  };
}

interface Look {
  readonly icon: string;
  readonly headline: string;
  readonly colour: Colour;
  readonly rest: string;
}

/** A store that is away fails again and again with the same words: people read them once in a while. */
const SAME_ERROR_MS = 10_000;

/** Wide enough for `Status: FOLLOWER`. */
const HEADLINE = 16;

function textLog(out: Out, id: string, self: string | undefined): Log {
  const print = (at: number, look: Look, millis: boolean): void => {
    const headline = { colour: look.colour, text: look.headline.padEnd(HEADLINE) };
    const time = { colour: "grey", text: clockTime(at, millis) } as const;
    out.line(`${look.icon} [${id}] `, headline, "  ", time, `  ${look.rest}`);
  };
  let lastError: Line | undefined;
  const isNews = (line: Line): boolean => {
    if (line.event !== "error") {
      lastError = undefined; // whatever fails now fails anew
      return line.event !== "leader" || line.candidate !== self; // its own election was printed already
    }
    const same = lastError?.reason === line.reason && line.at - (lastError?.at ?? 0) < SAME_ERROR_MS;
    if (!same) lastError = line;
    return !same;
  };
  return {
    line: (line) => {
      const { event } = line;
      if (event === "store") out.line({ colour: "grey", text: `elections live in ${line.detail}` });
      else if (isNews(line)) print(line.at, lookOf({ ...line, event }), true);
    },
    status: (status) => print(status.at, statusLook(status), false),
    note: (text) => out.line({ colour: "grey", text }),
  };
}

function statusLook({ leading, token, leader, trouble }: Status): Look {
  if (leading) {
    return {
      icon: "👑",
      headline: "Status: LEADER",
      colour: "green",
      rest: `token ${token ?? "?"}, this one leads`,
    };
  }
  return { icon: "👥", headline: "Status: FOLLOWER", colour: "blue", rest: whoLeads(leader, trouble) };
}

function whoLeads(leader: Leader | null | undefined, trouble: string | undefined): string {
  if (leader === undefined) return `not known yet who leads${trouble === undefined ? "" : `: ${trouble}`}`;
  return leader === null ? "nobody leads" : `${leader.candidate} leads with token ${leader.token}`;
}

/** What a leader publishes, if that says more than its name. */
function valueOf({ candidate, value }: Line): string {
  const silent = value === undefined || value === null || value === "" || value === candidate;
  return silent ? "" : `, value ${JSON.stringify(value)}`;
}

function lookOf(line: Line & { readonly event: Exclude<LineEvent, "store"> }): Look {
  const { event, token, candidate, reason } = line;
  switch (event) {
    case "elected":
      return {
        icon: "👑",
        headline: "ELECTED",
        colour: "green",
        rest: `token ${token}: ${candidate} leads "${line.election}"`,
      };
    case "ended":
      return reason === "resigned" || reason === "closed"
        ? {
            icon: "👋",
            headline: "RESIGNED",
            colour: "yellow",
            rest: `token ${token} given up: ${line.detail}`,
          }
        : {
            icon: "💔",
            headline: "LEADERSHIP LOST",
            colour: "red",
            rest: `token ${token} ${reason}: ${line.detail}`,
          };
    case "jeopardy":
      return {
        icon: "🔥",
        headline: "IN JEOPARDY",
        colour: "yellow",
        rest: `token ${token}, renewals fail: ${reason}`,
      };
    case "contained":
      return { icon: "📦", headline: "CONTAINED", colour: "grey", rest: line.detail ?? "" };
    case "safe":
      return { icon: "💚", headline: "SAFE AGAIN", colour: "green", rest: `token ${token} renewed` };
    case "leader":
      return candidate === null
        ? { icon: "📭", headline: "VACANT", colour: "yellow", rest: "nobody leads" }
        : {
            icon: "📣",
            headline: "NEW LEADER",
            colour: "cyan",
            rest: `${candidate} leads with token ${token}${valueOf(line)}`,
          };
    case "work":
      return {
        icon: "🔨",
        headline: "WORK",
        colour: "grey",
        rest: `piece ${line.count} under token ${token}`,
      };
    case "error":
      return { icon: "❌", headline: "ERROR", colour: "red", rest: reason ?? "" };
  }
}
