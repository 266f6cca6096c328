/** Opens the TCP or TLS connection to a server. */
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Stop } from "../../../kit/stop.js";
import { onAbort } from "../../../kit/wait.js";
import { authority, type Endpoint, readTls, type TlsFiles } from "./endpoint.js";
import { dialError } from "./errors.js";

export async function dial(endpoint: Endpoint, tls: TlsFiles | undefined, stop: Stop): Promise<Socket> {
  const { host, port } = endpoint;
  const who = authority(endpoint);
  const files = tls === undefined ? undefined : await readTls(tls);
  if (stop.aborted) throw stop.reason;
  return new Promise((resolve, reject) => {
    const socket =
      files === undefined
        ? connectTcp({ host, port, noDelay: true })
        : connectTls({ host, port, ...(isIP(host) === 0 && { servername: host }), ...files });
    socket.setNoDelay(true);
    const unlink = onAbort(stop, () => {
      socket.destroy();
      reject(stop.reason);
    });
    const failed = (error: unknown): void => {
      unlink();
      socket.destroy();
      reject(dialError(error, who, tls !== undefined));
    };
    socket.once("error", failed);
    socket.once(files === undefined ? "connect" : "secureConnect", () => {
      unlink();
      socket.removeListener("error", failed);
      resolve(socket);
    });
  });
}
