/** Server-sent events, for one client. A client that does not read is dropped, not buffered for. */
import type { ServerResponse } from "node:http";
import type { Clock } from "../seam/clock.js";
import { SECURITY_HEADERS } from "./security.js";
import type { WireEvent } from "./protocol.js";
import type { ElectionView } from "./view.js";

/** Also tells the client how long what it knows is still valid. */
const STATE_EVERY_MS = 1000;
const MOST_UNSENT_BYTES = 256 * 1024;

/** Starts a stream. What it returns sends one event; `event` must be a plain word. */
export function openStream(response: ServerResponse): (event: string, data: object) => void {
  response.writeHead(200, { ...SECURITY_HEADERS, "content-type": "text/event-stream; charset=utf-8" });
  return (event, data) => {
    if (response.destroyed) return;
    if (response.writableLength > MOST_UNSENT_BYTES) return void response.destroy();
    response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  };
}

/** Calls back once, when the client is gone. */
export function onGone(response: ServerResponse, gone: () => void): void {
  response.on("error", () => {}); // a "close" follows
  response.once("close", gone);
}

/** What happens in these elections, until the client goes. */
export function stream(views: readonly ElectionView[], clock: Clock, response: ServerResponse): void {
  const raw = openStream(response);
  const send = (event: WireEvent): void => raw(event.event, event);
  const state = (view: ElectionView): void =>
    send({ event: "state", at: clock.wall(), election: view.election.name, state: view.state() });
  const offs = views.flatMap((view) => [...tell(view, clock, send), view.onChange(() => state(view))]);
  const all = (): void => views.forEach(state);
  let timer = clock.after(STATE_EVERY_MS, function again() {
    all();
    timer = clock.after(STATE_EVERY_MS, again);
  });
  all();
  onGone(response, () => {
    timer.cancel();
    for (const off of offs) off();
  });
}

function tell({ election }: ElectionView, clock: Clock, send: (event: WireEvent) => void): (() => void)[] {
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
  return [
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
  ];
}
