/** What a voter answers that takes no part: it does not know, and says why. */
import type { Answer, Request } from "./transport/wire.js";

export function unfitAnswer(request: Request, unfit: string): Answer {
  switch (request.kind) {
    case "prevote":
    case "vote":
      return { kind: "vote", yes: false, term: 0n, why: "unfit", detail: unfit };
    case "beat":
      return { kind: "beat", yes: false, term: 0n, why: "unfit", detail: unfit, version: -1 };
    case "release":
      return { kind: "release", held: false, unfit };
    case "who":
      return { kind: "who", term: 0n, change: -1, promised: null, quietMs: 0, unfit };
    case "prepare":
    case "accept":
    case "query":
      return { kind: "register", yes: false, promised: 0n, accepted: null, unfit };
    case "read":
    case "write":
      return { kind: "entry", entry: null, unfit };
    case "state":
      throw new Error("a voter always tells its state");
  }
}
