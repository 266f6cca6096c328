/**
 * Since when the ensemble's leader counts a session's timeout, at the least.
 *
 * A server answers pings and reads by itself. It tells the leader which of its
 * sessions it has heard of when the leader pings it, every half tick, and only
 * then is a session's timeout extended. So that a request was answered says
 * nothing; and that a write was answered says that the leader was there, but not
 * that it has been told of the session since.
 *
 * Two facts together prove it: a request was answered, and longer than the
 * leader's pings are apart after that a write was sent, and answered. Server and
 * leader speak over one TCP connection: before the leader saw the write it had
 * received the answer to its ping, and with it the session. The timeout then
 * counts from the sending of the first request, or later. A handshake is passed
 * on to the leader, so it counts at once, as soon as a write proves that this was
 * the leader.
 */
import type { Reading } from "../../seam/clock.js";
import type { ZooKeeperConnection } from "./client.js";

interface Touch {
  readonly asked: Reading;
  readonly answeredAt: number;
}

export class Touches {
  readonly #lagMs: number;
  #connection: ZooKeeperConnection | undefined;
  #touches: Touch[] = [];

  /** `lagMs`: longest time between a request and the leader's learning of it. */
  constructor(lagMs: number) {
    this.#lagMs = lagMs;
  }

  /** A request that was sent at `asked` was answered. */
  answered(connection: ZooKeeperConnection, asked: Reading, answeredAt: number): void {
    this.#on(connection);
    this.#touches.push({ asked, answeredAt });
  }

  /** What a write on this connection, sent at this instant, proves if it is answered. */
  provenBy(connection: ZooKeeperConnection, sentAt: number): Reading {
    this.#on(connection);
    const touches = this.#touches;
    while (touches.length > 1 && touches[1]!.answeredAt <= sentAt - this.#lagMs) touches.shift();
    const [first] = touches;
    return first !== undefined && first.answeredAt <= sentAt - this.#lagMs ? first.asked : connection.asked;
  }

  /** What happened on another connection proves nothing about this one. */
  #on(connection: ZooKeeperConnection): void {
    if (this.#connection === connection) return;
    this.#connection = connection;
    this.#touches = [];
  }
}
