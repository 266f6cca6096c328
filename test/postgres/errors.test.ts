/** What a user can do wrong, and what the server can refuse: one clear error each, and the password in none of them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ConclaveError, Election } from "../../src/index.js";
import { schemaText } from "../../src/backends/postgres/table.js";
import { openPostgres } from "../../src/backends/postgres/index.js";
import { hasPostgres, PostgresServer } from "../support/postgres-server.js";

const PASSWORD = "p@ss/word?#1234";

/** The error of one attempt to lead. */
async function refusal(url: string): Promise<ConclaveError> {
  await using election = new Election({ name: "refused", backend: openPostgres(url), closeBackend: true });
  const term = await election.tryCampaign().then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(term).toBeInstanceOf(ConclaveError);
  return term as ConclaveError;
}

describe.skipIf(!hasPostgres())("refusals of PostgreSQL", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start({ password: PASSWORD });
    await server.sql(`CREATE ROLE weak LOGIN PASSWORD 'weak-password'`);
    await server.sql(`CREATE ROLE reader LOGIN PASSWORD 'weak-password'`);
    await server.sql(`ALTER ROLE reader SET default_transaction_read_only = on`);
    await server.sql(`CREATE SCHEMA own AUTHORIZATION reader`);
    await server.sql(`CREATE TABLE public.foreign_table (key text PRIMARY KEY, other int)`);
    await server.sql(`GRANT ALL ON public.foreign_table TO weak`);
    await server.sql(schemaText({ table: "closed" }));
  });
  afterAll(() => server?.stop());

  const at = (user: string, password: string, rest = "/postgres"): string =>
    `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${server.port}${rest}`;

  it.each([
    ["a wrong password", () => at("postgres", "not-the-password-9"), "forbidden", /password is not accepted/],
    [
      "no password",
      () => `postgres://postgres@127.0.0.1:${server.port}/postgres`,
      "forbidden",
      /none was given/,
    ],
    ["an unknown role", () => at("nobody", PASSWORD), "forbidden", /28(P01|000)/],
    [
      "an unknown database",
      () => at("postgres", PASSWORD, "/nowhere"),
      "invalid",
      /create the database first/,
    ],
    [
      "an unknown schema",
      () => at("postgres", PASSWORD, "/postgres?schema=nowhere"),
      "invalid",
      /CREATE SCHEMA/,
    ],
    [
      "no right to create the table",
      () => at("weak", "weak-password"),
      "forbidden",
      /CREATE TABLE IF NOT EXISTS/,
    ],
    [
      "no right on the table",
      () => at("weak", "weak-password", "/postgres?table=closed"),
      "forbidden",
      /SELECT, INSERT and UPDATE/,
    ],
    [
      "a table of somebody else",
      () => at("weak", "weak-password", "/postgres?table=foreign_table"),
      "conflict",
      /not one of Conclave/,
    ],
    [
      "a read-only server",
      () => at("reader", "weak-password", "/postgres?schema=own"),
      "unavailable",
      /takes no writes/,
    ],
    [
      "TLS where there is none",
      () => at("postgres", PASSWORD, "/postgres?sslmode=verify-full"),
      "unavailable",
      /TLS settings/,
    ],
  ] as const)("%s", async (_, url, code, message) => {
    const error = await refusal(url());
    expect(error.message).toMatch(message);
    expect(error.code).toBe(code);
    const told = `${error.message} ${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`;
    for (const secret of [PASSWORD, encodeURIComponent(PASSWORD), "weak-password", "not-the-password-9"])
      expect(told).not.toContain(secret);
  });

  it("an unknown host, and a port where nobody listens", async () => {
    const unknown = await refusal("postgres://postgres@host.invalid:5432/postgres");
    expect(unknown).toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/host\.invalid:5432 cannot be reached/) as string,
    });
    const closed = await refusal("postgres://postgres@127.0.0.1:1/postgres");
    expect(closed).toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(
        /127\.0\.0\.1:1 cannot be reached.*ECONNREFUSED.*: check host, port, TLS settings and that it runs$/,
      ) as string,
    });
  });
});
