/** Server-sent events of one election, for one client. A client that does not read is dropped, not buffered for. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../core/clock.js";
import { SECURITY_HEADERS } from "./security.js";
import type { WireEvent } from "./protocol.js";
import type { ElectionView } from "./view.js";

/** Also tells the client how long what it knows is still valid. */
const STATE_EVERY_MS = 1000;
const MOST_UNSENT_BYTES = 256 * 1024;

export function stream(
  view: ElectionView,
  clock: Clock,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  response.writeHead(200, { ...SECURITY_HEADERS, "content-type": "text/event-stream; charset=utf-8" });
  const send = (event: WireEvent): void => {
    if (response.writableLength > MOST_UNSENT_BYTES) return void response.destroy();
    response.write(`event: ${event.event}\ndata: ${JSON.stringify(event)}\n\n`);
  };
  const state = (): void => send({ event: "state", at: clock.wall(), state: view.state() });
  const { election } = view;
  const told = (event: "elected" | "jeopardy" | "safe") =>
    election.on(event, ({ term }) =>
      send({
        event,
        at: clock.wall(),
        election: term.election,
        candidate: term.candidate,
        token: term.token.toString(),
      }),
    );
  const offs = [
    told("elected"),
    told("jeopardy"),
    told("safe"),
    election.on("ended", ({ term, end: { reason, detail } }) =>
      send({
        event: "ended",
        at: clock.wall(),
        election: term.election,
        candidate: term.candidate,
        token: term.token.toString(),
        reason,
        detail,
      }),
    ),
    view.onChange(state),
  ];
  let timer = clock.after(STATE_EVERY_MS, function again() {
    state();
    timer = clock.after(STATE_EVERY_MS, again);
  });
  state();
  const end = (): void => {
    timer.cancel();
    for (const off of offs) off();
  };
  request.on("close", end);
  response.on("close", end);
  response.on("error", end);
}
