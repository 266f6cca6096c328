/**
 * The network of the peers: a small proxy for every ordered pair, on this machine.
 * A link is cut in one direction: what was sent stays under way, nobody is told,
 * and a new connection is not made, because that takes both directions. Healed, it
 * goes on as TCP does after a loss.
 */
import { createServer, connect } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";

const LOOPBACK = "127.0.0.1";

type Way = "there" | "back";

/** What one peer dials to reach another. */
class Wire {
  readonly #server: Server;
  readonly #target: number;
  readonly #passed: (way: Way) => void;
  readonly #sockets = new Set<Socket>();
  /** Sockets whose data must not go on, by the direction it would go. */
  readonly #sources: Record<Way, Set<Socket>> = { there: new Set(), back: new Set() };
  readonly #cut: Record<Way, boolean> = { there: false, back: false };
  /** Done when the wire is whole again. */
  #later: (() => void)[] = [];

  constructor(target: number, passed: (way: Way) => void) {
    this.#target = target;
    this.#passed = passed;
    this.#server = createServer({ noDelay: true, pauseOnConnect: true }, (caller) => this.#accept(caller));
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(0, LOOPBACK, resolve);
    });
  }

  get address(): string {
    return `${LOOPBACK}:${(this.#server.address() as AddressInfo).port}`;
  }

  set(way: Way, cut: boolean): void {
    this.#cut[way] = cut;
    for (const source of this.#sources[way]) {
      if (cut) source.pause();
      else source.resume();
    }
    if (!this.#whole) return;
    for (const act of this.#later.splice(0)) act();
  }

  close(): void {
    this.#later = [];
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  get #whole(): boolean {
    return !this.#cut.there && !this.#cut.back;
  }

  #accept(caller: Socket): void {
    this.#keep(caller);
    if (this.#whole) this.#join(caller);
    else this.#later.push(() => this.#join(caller));
  }

  #join(caller: Socket): void {
    if (caller.destroyed) return;
    const callee = connect({ host: LOOPBACK, port: this.#target, noDelay: true });
    this.#keep(callee);
    this.#carry(caller, callee, "there");
    this.#carry(callee, caller, "back");
  }

  #carry(from: Socket, to: Socket, way: Way): void {
    this.#sources[way].add(from);
    from.on("data", (bytes) => {
      this.#passed(way);
      to.write(bytes);
    });
    from.once("close", () => {
      this.#sources[way].delete(from);
      // That a process is gone is news, too, which does not get through.
      if (this.#cut[way]) this.#later.push(() => to.destroy());
      else to.destroy();
    });
    if (this.#cut[way]) from.pause();
    else from.resume();
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => this.#sockets.delete(socket));
  }
}

export class Wires {
  readonly #names: readonly string[];
  /** By caller and callee: one for each algorithm. */
  readonly #wires = new Map<string, Wire[]>();
  readonly #cuts = new Set<string>();
  readonly #sent = new Map<string, number>();

  constructor(names: readonly string[]) {
    this.#names = names;
  }

  /** Lays wires between all peers, which listen on these ports. Where a caller reaches the others. */
  async lay(ports: Readonly<Record<string, number>>): Promise<Map<string, Record<string, string>>> {
    const dial = new Map<string, Record<string, string>>();
    for (const [from, to] of pairsOf(this.#names)) {
      const wire = new Wire(ports[to]!, (way) => this.#count(way === "there" ? [from, to] : [to, from]));
      await wire.open();
      const key = keyOf(from, to);
      this.#wires.set(key, [...(this.#wires.get(key) ?? []), wire]);
      dial.set(from, { ...dial.get(from), [to]: wire.address });
    }
    return dial;
  }

  /** From now on nothing of what the one sends reaches the other; or all of it again. */
  cut(from: string, to: string, on: boolean): void {
    if (on) this.#cuts.add(keyOf(from, to));
    else this.#cuts.delete(keyOf(from, to));
    // Answers travel on the connection of whoever asked.
    for (const wire of this.#wires.get(keyOf(from, to)) ?? []) wire.set("there", on);
    for (const wire of this.#wires.get(keyOf(to, from)) ?? []) wire.set("back", on);
  }

  get links(): { from: string; to: string; cut: boolean; sent: number }[] {
    return pairsOf(this.#names).map(([from, to]) => {
      const key = keyOf(from, to);
      return { from, to, cut: this.#cuts.has(key), sent: this.#sent.get(key) ?? 0 };
    });
  }

  close(): void {
    for (const wire of [...this.#wires.values()].flat()) wire.close();
  }

  #count([from, to]: readonly [string, string]): void {
    const key = keyOf(from, to);
    this.#sent.set(key, (this.#sent.get(key) ?? 0) + 1);
  }
}

function keyOf(from: string, to: string): string {
  return `${from} ${to}`;
}

function pairsOf(names: readonly string[]): [string, string][] {
  return names.flatMap((from) => names.filter((to) => to !== from).map((to): [string, string] => [from, to]));
}

/** Ports of this machine that were free a moment ago. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  try {
    await Promise.all(
      servers.map(
        (server) =>
          new Promise<void>((resolve, reject) => {
            server.once("error", reject);
            server.listen(0, LOOPBACK, resolve);
          }),
      ),
    );
    return servers.map((server) => (server.address() as AddressInfo).port);
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}
