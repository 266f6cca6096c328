/** A proxy that keeps what the caller sent. */
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";

export interface TcpRecorder {
  readonly port: number;
  sent(): Buffer;
  close(): Promise<void>;
}

export async function tcpRecorder(target: number): Promise<TcpRecorder> {
  const chunks: Buffer[] = [];
  const server = createServer((caller) => {
    const callee = connect(target, "127.0.0.1");
    caller.on("data", (bytes) => chunks.push(bytes));
    caller.pipe(callee).pipe(caller);
    for (const [one, other] of [
      [caller, callee],
      [callee, caller],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    sent: () => Buffer.concat(chunks),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
