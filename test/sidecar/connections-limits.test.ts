/** Which connection is dropped, and when: on a virtual clock, with sockets that do what the test says. */
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import { Connections } from "../../src/sidecar/connections.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const CHECK_MS = 1_000;
const STALLED_CHECKS = 5;
const MOST_PIPELINED = 16;

let clock: VirtualClock;
let connections: Connections;

beforeEach(() => {
  clock = new VirtualClock();
  connections = new Connections(2, clock);
});

/** A socket whose counters are the test's. */
class Client {
  readonly socket = new Socket();
  dropped = false;
  /** Bytes handed to the socket, and how many of them the client has not taken. */
  written = 0;
  unsent = 0;

  constructor() {
    Object.defineProperty(this.socket, "bytesWritten", { get: () => this.written });
    Object.defineProperty(this.socket, "writableLength", { get: () => this.unsent });
    this.socket.resetAndDestroy = () => {
      this.dropped = true;
      return this.socket;
    };
  }

  request(): { response: ServerResponse; served: boolean } {
    const response = new ServerResponse(new IncomingMessage(this.socket));
    return { response, served: connections.serving(this.socket, response) };
  }
}

/** A client that has connected; what arrives with the connection has been read. */
async function connected(): Promise<Client> {
  const client = new Client();
  connections.add(client.socket);
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  return client;
}

describe("a client that takes no bytes", () => {
  it("is dropped at the fifth check in a row", async () => {
    const client = await connected();
    [client.written, client.unsent] = [100, 60];
    await clock.advance(CHECK_MS); // the first check sees forty bytes taken
    await clock.advance((STALLED_CHECKS - 1) * CHECK_MS);
    expect(client.dropped).toBe(false);
    await clock.advance(CHECK_MS);
    expect(client.dropped).toBe(true);
    expect(clock.timers, "nobody is left to check").toBe(0);
  });

  it("starts anew with every byte that it takes", async () => {
    const client = await connected();
    client.unsent = 60;
    for (let round = 1; round <= 3; round++) {
      client.written = client.unsent + round;
      await clock.advance(STALLED_CHECKS * CHECK_MS); // one that sees a byte, four that see none
      expect(client.dropped, `round ${round}`).toBe(false);
    }
    await clock.advance(CHECK_MS);
    expect(client.dropped).toBe(true);
  });

  it("is nobody's fault if there is nothing to take", async () => {
    const client = await connected();
    client.written = 100;
    await clock.advance(20 * CHECK_MS);
    expect(client.dropped).toBe(false);
    client.unsent = 10;
    await clock.advance((STALLED_CHECKS - 1) * CHECK_MS);
    expect(client.dropped, "the checks before do not count").toBe(false);
  });

  it("does not take others with it", async () => {
    const [stuck, fine] = [await connected(), await connected()];
    [stuck.written, stuck.unsent] = [60, 60];
    await clock.advance((STALLED_CHECKS + 1) * CHECK_MS);
    expect([stuck.dropped, fine.dropped]).toEqual([true, false]);
    expect(clock.timers).toBe(1);
    fine.socket.emit("close");
    expect(clock.timers).toBe(0);
    const later = await connected();
    [later.written, later.unsent] = [60, 60];
    await clock.advance((STALLED_CHECKS + 1) * CHECK_MS);
    expect(later.dropped, "checks have begun again").toBe(true);
  });
});

describe("at the limit", () => {
  it("the longest idle goes, and one that was served since is not it", async () => {
    const [first, second] = [await connected(), await connected()];
    const { response } = first.request();
    response.emit("prefinish"); // first was idle longest; now second is
    const third = await connected();
    expect([first.dropped, second.dropped, third.dropped]).toEqual([false, true, false]);
    await connected();
    expect([first.dropped, third.dropped]).toEqual([true, false]);
  });

  it("nobody who is being served goes, and the new one is refused", async () => {
    const clients = [await connected(), await connected()];
    const responses = clients.map((client) => client.request().response);
    expect((await connected()).dropped).toBe(true);
    expect(clients.map(({ dropped }) => dropped)).toEqual([false, false]);
    responses[0]!.emit("close"); // cut off: it never finished
    expect((await connected()).dropped).toBe(false);
    expect(clients.map(({ dropped }) => dropped)).toEqual([true, false]);
  });

  it("who has two requests is idle after both", async () => {
    const [two, other] = [await connected(), await connected()];
    const responses = [two.request().response, two.request().response];
    other.request();
    responses[1]!.emit("prefinish");
    expect((await connected()).dropped).toBe(true);
    responses[0]!.emit("prefinish");
    expect((await connected()).dropped).toBe(false);
    expect([two.dropped, other.dropped]).toEqual([true, false]);
  });

  it("who has asked at once is not idle", async () => {
    const quick = new Client();
    connections.add(quick.socket);
    quick.request();
    const other = await connected();
    await connected();
    expect([quick.dropped, other.dropped]).toEqual([false, true]);
  });

  it("who has gone takes no place", async () => {
    const clients = [await connected(), await connected()];
    clients[0]!.socket.emit("close");
    await connected();
    expect(clients[1]!.dropped).toBe(false);
  });
});

describe("requests in a row", () => {
  it("are served up to sixteen that are not sent; the next one costs the connection", async () => {
    const client = await connected();
    const requests = Array.from({ length: MOST_PIPELINED }, () => client.request());
    expect(requests.every(({ served }) => served)).toBe(true);
    requests[0]!.response.emit("close");
    expect(client.request().served, "one was sent, one more may wait").toBe(true);
    expect(client.dropped).toBe(false);
    expect(client.request().served).toBe(false);
    expect(client.dropped).toBe(true);
    expect(client.request().served, "of a connection that was dropped").toBe(false);
  });
});
