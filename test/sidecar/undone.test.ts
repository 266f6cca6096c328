/** What a sidecar begins it undoes: listeners, timers, streams, refusals. On a virtual clock, without a network where none is needed. */
import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Leader } from "../../src/seam/backend.js";
import type { Election } from "../../src/index.js";
import { Connections } from "../../src/sidecar/connections.js";
import { createSidecar } from "../../src/sidecar/index.js";
import { hostsOf } from "../../src/sidecar/security.js";
import { stream } from "../../src/sidecar/stream.js";
import { ElectionView } from "../../src/sidecar/view.js";
import { ask, takenPort } from "../cli/http.js";
import { openScene, silence, TTL_MS } from "../support/hand-backend.js";
import type { Scene } from "../support/hand-backend.js";

const OTHER: Leader = { candidate: "other-1", token: 5n, value: "v" };
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

let scene: Scene;
/** Listeners of the election that were added and not removed. */
let open: Set<symbol>;

beforeEach(() => {
  scene = openScene();
  open = countedListeners(scene.election);
});

afterEach(async () => {
  vi.restoreAllMocks();
  await scene.election.close();
  expect(scene.clock.timers, "timers that are left").toBe(0);
});

function countedListeners(election: Election): Set<symbol> {
  const added = new Set<symbol>();
  const on = election.on.bind(election);
  vi.spyOn(election, "on").mockImplementation((...given: Parameters<typeof on>) => {
    const off = on(...given);
    const one = Symbol(given[0]);
    added.add(one);
    return () => {
      added.delete(one);
      off();
    };
  });
  return added;
}

describe("a view", () => {
  it("that is closed listens to nothing, and tells nobody", async () => {
    const view = new ElectionView(scene.election, scene.clock);
    let told = 0;
    view.onChange(() => void told++);
    await turn();
    expect(open.size).toBe(4);
    await view.close();
    expect(open.size).toBe(0);
    told = 0;
    await scene.election.campaign();
    expect(told).toBe(0);
  });

  it("that asks again and again keeps no link to its end for each question", async () => {
    let links = 0;
    const { addEventListener, removeEventListener } = EventTarget.prototype;
    vi.spyOn(AbortSignal.prototype, "addEventListener").mockImplementation(function (
      this: AbortSignal,
      ...given: Parameters<EventTarget["addEventListener"]>
    ) {
      links++;
      addEventListener.apply(this, given);
    });
    vi.spyOn(AbortSignal.prototype, "removeEventListener").mockImplementation(function (
      this: AbortSignal,
      ...given: Parameters<EventTarget["removeEventListener"]>
    ) {
      links--;
      removeEventListener.apply(this, given);
    });
    const view = new ElectionView(scene.election, scene.clock);
    await scene.clock.advance(TTL_MS);
    const before = links;
    const asked = scene.backend.count("observe");
    await scene.clock.advance(10 * TTL_MS);
    expect(scene.backend.count("observe")).toBeGreaterThan(asked + 20);
    expect(links).toBe(before);
    await view.close();
  });

  it("that is pushed a change while it asks does not wait before it asks again", async () => {
    let push: (leader: Leader) => void = () => {};
    let answer: (leader: Leader | null) => void = () => {};
    let follows = true;
    scene.backend.leaders = async function* () {
      if (follows) {
        follows = false;
        yield null;
        yield await new Promise<Leader>((resolve) => (push = resolve));
        await silence();
      } else yield await new Promise<Leader | null>((resolve) => (answer = resolve));
    };
    const view = new ElectionView(scene.election, scene.clock);
    await turn();
    answer(null);
    await turn();
    expect(view.state()?.leader).toBeNull();
    await scene.clock.advance(TTL_MS / 3); // asks again
    push(OTHER);
    await turn();
    const asked = scene.backend.count("observe");
    answer(null); // an old answer
    await turn();
    expect(scene.backend.count("observe")).toBe(asked + 1);
    answer(OTHER);
    await turn();
    expect(view.state()?.leader).toMatchObject({ candidate: "other-1" });
    const closing = view.close();
    await scene.clock.advance(TTL_MS);
    void closing;
  });
});

describe("a stream of events", () => {
  function client(): { response: ServerResponse; sent: string[]; leave: () => void } {
    const sent: string[] = [];
    const response = Object.assign(new EventEmitter(), {
      destroyed: false,
      writableLength: 0,
      writeHead: () => {},
      write: (text: string) => void sent.push(text),
    });
    const leave = (): void => void response.emit("close");
    return { response: response as unknown as ServerResponse, sent, leave };
  }

  const events = (sent: readonly string[]): { event: string; [field: string]: unknown }[] =>
    sent.map((text) => JSON.parse(/^data: (.*)$/m.exec(text)![1]!) as { event: string });

  it("says the state at once and every second, and nothing after its client has left", async () => {
    const view = new ElectionView(scene.election, scene.clock);
    await turn();
    const before = [open.size, scene.clock.timers];
    const { response, sent, leave } = client();
    stream([view], scene.clock, response);
    expect(events(sent).map(({ event }) => event)).toEqual(["state"]);
    await scene.clock.advance(3_000);
    expect(sent).toHaveLength(4);
    leave();
    expect([open.size, scene.clock.timers]).toEqual(before);
    const term = await scene.election.campaign();
    await term.resign();
    expect(sent).toHaveLength(4);
    await view.close();
  });

  it("names term and reason of each event", async () => {
    const view = new ElectionView(scene.election, scene.clock);
    await turn();
    const { response, sent, leave } = client();
    stream([view], scene.clock, response);
    const term = await scene.election.campaign();
    scene.backend.onRenew = () => Promise.reject(new Error("away"));
    await scene.clock.advance(TTL_MS / 3);
    scene.backend.onRenew = () => {};
    await scene.clock.advance(TTL_MS / 3);
    const at = scene.clock.wall();
    await term.resign();
    const told = events(sent).filter(({ event }) => event !== "state");
    const base = { election: "e", candidate: scene.election.candidate, token: "1" };
    expect(told.map(({ event }) => event)).toEqual(["elected", "jeopardy", "safe", "ended"]);
    for (const each of told) expect(each).toMatchObject(base);
    expect(told[3]).toEqual({
      ...base,
      ...{ event: "ended", at, reason: "resigned", detail: "resign() was called" },
    });
    leave();
    await view.close();
  });
});

it("one that cannot listen stops asking its store", async () => {
  const { port, free } = await takenPort();
  try {
    await expect(
      createSidecar({ elections: [scene.election], port, clock: scene.clock }),
    ).rejects.toMatchObject({ code: "unsupported" });
    expect([scene.clock.timers, open.size]).toEqual([0, 0]);
  } finally {
    await free();
  }
});

it("its own host names are known in whatever case they were given", () => {
  expect([...hostsOf("Box.Local", ["API.example"])]).toEqual(
    expect.arrayContaining(["box.local", "api.example", "localhost"]),
  );
});

it("a body that is too large is refused, and its connection is not used again", async () => {
  const token = "0123456789abcdef";
  await using sidecar = await createSidecar({ elections: [scene.election], token });
  const answer = await ask(`${sidecar.url}/elections/e/resign`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-length": "20000", connection: "keep-alive" },
    body: "x".repeat(20_000),
  }).catch((error: unknown) => error);
  expect(answer).toMatchObject({ status: 413, headers: { connection: "close" } });
});

describe("a refusal", () => {
  /** A socket that has asked something, and notes what becomes of it. */
  function refused(): Socket & { done: string[] } {
    const done: string[] = [];
    const note = (what: string) => () => void done.push(what);
    const socket = Object.assign(new Socket(), { done });
    for (const [name, value] of [
      ["bytesRead", 10],
      ["writable", true],
      ["end", note("answered")],
      ["resetAndDestroy", note("reset")],
      ["destroySoon", note("closed")],
      ["resume", () => {}],
    ] as const)
      Object.defineProperty(socket, name, { value });
    return socket;
  }

  it("closes as soon as the client has, at the latest after a second", async () => {
    const connections = new Connections(8, scene.clock);
    const polite = refused();
    connections.refuse(polite, "no");
    polite.emit("end");
    expect(polite.done).toEqual(["answered", "closed"]);
    polite.emit("close");
    expect(scene.clock.timers).toBe(0);
    const silent = refused();
    connections.refuse(silent, "no");
    await scene.clock.advance(999);
    expect(silent.done).toEqual(["answered"]);
    await scene.clock.advance(1);
    expect(silent.done).toEqual(["answered", "reset"]);
  });
});
