/** Where the package pg is not installed. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { main } from "../../src/cli/program.js";
import { schedule } from "../../src/cron/index.js";
import { postgresBackend } from "../../src/backends/postgres/index.js";
import { openBackend } from "../../src/open.js";

const URL = "postgres://127.0.0.1:1/nothing";
const ADVICE = { code: "unsupported", message: expect.stringContaining("npm install pg") as string };

beforeEach(() => {
  vi.doMock("pg", () => {
    throw new Error("Cannot find package 'pg'");
  });
});

afterEach(() => {
  vi.doUnmock("pg");
  vi.restoreAllMocks();
});

it("opening a URL is an error at once, which names the package", async () => {
  await expect(openBackend(URL)).rejects.toMatchObject(ADVICE);
  await expect(openBackend(`${URL}?layout=shedlock`)).rejects.toMatchObject(ADVICE);
});

it("a schedule does not start", async () => {
  const starting = schedule({ name: "nightly", cron: "0 3 * * *", backend: URL, job: () => {} });
  await expect(starting).rejects.toMatchObject(ADVICE);
});

it("the command line ends with 2", async () => {
  const said: string[] = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    said.push(String(text));
    return true;
  });
  expect(await main(["cron", "0 3 * * *", "nightly", "--backend", URL, "--", "true"])).toBe(2);
  expect(said.join("")).toContain("npm install pg");
});

it("a client of one's own needs no pg", async () => {
  const texts: string[] = [];
  const client = {
    query: async (text: string) => {
      texts.push(text);
      throw new Error("asked");
    },
  };
  await using backend = postgresBackend({ client });
  const { signal } = new AbortController();
  await expect(backend.list!({ signal })).rejects.toThrow("asked");
  expect(texts).not.toEqual([]);
});
