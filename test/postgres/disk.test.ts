/** A full disk: a tablespace on a file system of its own that is a megabyte large. Needs root. */
import { execFile } from "node:child_process";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { postgresBackend } from "../../src/backends/postgres/index.js";
import { schemaText } from "../../src/backends/postgres/table.js";
import { serverUser } from "../support/postgres-command.js";
import { hasPostgres, PostgresServer } from "../support/postgres-server.js";
import { until } from "../support/until.js";

const run = promisify(execFile);
const user = serverUser();

describe.skipIf(!hasPostgres() || user === undefined)("a full disk", () => {
  it("is said, and it goes on when there is room", async () => {
    const server = await PostgresServer.start();
    const disk = await mkdtemp(join(tmpdir(), "conclave-disk-"));
    await run("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", disk]);
    try {
      await chown(disk, user!.uid, user!.gid);
      await server.sql(`CREATE TABLESPACE tiny LOCATION '${disk}'`);
      await server.sql("ALTER DATABASE postgres SET default_tablespace = tiny");
      await server.sql(schemaText({}));
      await server.sql("CREATE TABLE filler (t text)");
      await server.sql("ALTER TABLE filler ALTER t SET STORAGE PLAIN");
      const fill = server.client().then(async (client) => {
        for (;;) await client.query("INSERT INTO filler SELECT repeat('x', 7000) FROM generate_series(1, 4)");
      });
      await expect(fill).rejects.toMatchObject({ code: "53100" });
      await using backend = postgresBackend({ url: server.url() });
      const signal = (): AbortSignal => new AbortController().signal;
      const write = async (): Promise<void> => {
        for (let i = 0; i < 200; i++)
          await backend.records.write(`r${i}`, null, "y".repeat(2_000), { signal: signal() });
      };
      await expect(write()).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringMatching(/53100.*disk is full/) as string,
      });
      await server.sql("DROP TABLE filler");
      await until(
        async () =>
          (await backend.records.write("room", null, "z", { signal: signal() }).catch(() => null)) !== null,
      );
    } finally {
      await server.stop();
      await run("umount", [disk]);
      await rm(disk, { recursive: true, force: true });
    }
  });
});
