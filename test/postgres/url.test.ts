/** What a URL and options say, and what is refused before anything is sent. No server needed. */
import { describe, expect, it } from "vitest";
import { postgresBackend } from "../../src/backends/postgres/index.js";
import { parsePostgresUrl } from "../../src/backends/postgres/url.js";
import { schemaText } from "../../src/backends/postgres/table.js";

describe("PostgreSQL URLs", () => {
  it("several hosts are one configuration each, with the same user, database and parameters", () => {
    const { hosts } = parsePostgresUrl(
      "postgresql://app:s%40cret@db-1:5432,[::1]:5433/orders?sslmode=disable&table=t",
    );
    expect(hosts.map(({ connectionString }) => connectionString)).toEqual([
      "postgres://app:s%40cret@db-1:5432/orders?sslmode=disable",
      "postgres://app:s%40cret@[::1]:5433/orders?sslmode=disable",
    ]);
  });

  it("its own parameters are not handed on", () => {
    const url = parsePostgresUrl("postgres://db/x?schema=a&table=b&quarantine=false&listen=direct:5433");
    expect(url).toMatchObject({ schema: "a", table: "b", quarantine: false, listen: "direct:5433" });
    expect(url.listenHosts?.[0]?.connectionString).toBe("postgres://direct:5433/x");
    expect(parsePostgresUrl("postgres://db/x?listen=false").listen).toBe(false);
  });

  it.each([
    ["postgres://u:pa/ss@host/db", /%2F/],
    ["postgres://h/db?shema=x", /no parameter "shema"/],
    ["postgres://h/db?layout=x", /"record"/],
    ["postgres://h/db?quarantine=perhaps", /true or false/],
    ["postgres://a b/db", /cannot be read/],
    ["postgres://h/db#x", /not a PostgreSQL URL/],
  ])("%s is refused", (url, message) => {
    expect(() => postgresBackend({ url })).toThrow(message);
    try {
      postgresBackend({ url });
    } catch (error) {
      expect(String(error)).not.toContain("pa/ss");
    }
  });

  it.each([
    [{}, /a url or a client/],
    [{ url: "postgres:", client: { query: async () => ({ rows: [] }) } }, /a url or a client/],
    [{ url: "postgres:", connections: 0 }, /connections is 0/],
    [{ url: "postgres:", table: "x".repeat(64) }, /63 bytes/],
    [{ url: "postgres:", table: "" }, /empty/],
    [{ url: "postgres:", dialTimeoutMs: -1 }, /dialTimeoutMs/],
  ])("options %j are refused", (options, message) => {
    expect(() => postgresBackend(options)).toThrow(message);
  });

  it("names of tables are quoted", () => {
    expect(schemaText({ schema: 'a"b', table: "C d" })).toContain('"a""b"."C d"');
  });
});
