/** PgBouncer in transaction mode in front of a server, on a free port. */
import { spawn } from "node:child_process";
import { chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "./free-ports.js";
import { PGBOUNCER, serverUser } from "./postgres-command.js";
import type { PostgresServer } from "./postgres-server.js";
import { until } from "./until.js";

export { hasPgbouncer } from "./postgres-command.js";

export interface Pgbouncer extends AsyncDisposable {
  readonly port: number;
}

export async function startPgbouncer(server: PostgresServer): Promise<Pgbouncer> {
  const user = serverUser();
  const [port = 0] = await freePorts(1);
  const directory = await mkdtemp(join(tmpdir(), "conclave-pgbouncer-"));
  const ini = join(directory, "pgbouncer.ini");
  await writeFile(
    ini,
    `[databases]
postgres = host=127.0.0.1 port=${server.port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
logfile = ${join(directory, "log")}
`,
  );
  for (const path of user === undefined ? [] : [directory, ini]) await chown(path, user!.uid, user!.gid);
  const child = spawn(PGBOUNCER, [ini], { ...user, stdio: "ignore" });
  const gone = new Promise((resolve) => child.once("exit", resolve));
  await until(() => answers(port));
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await gone;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });
}
