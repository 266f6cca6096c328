/** Servers and proxies that send our request back, credentials and all. */
import { writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import type { Credentials } from "../../src/backends/kubernetes/access.js";
import { conclave, scratch } from "../cli/process.js";
import { after, answer, closeAfterEach, fake, never } from "./support/fake.js";

closeAfterEach();

const TOKEN = `eyJhbGciOiJSUzI1NiJ9.${"c2VydmljZWFjY291bnQ".repeat(8)}.signature-part_of-it`;
const PASSWORD = `tr0ub4dor & "3"/sl`;
const HTML_PASSWORD = PASSWORD.replace(/&/g, "&amp;").replace(/"/g, "&quot;");
const BASIC = Buffer.from(`admin:${PASSWORD}`).toString("base64");

const WAYS: readonly [string, (request: IncomingMessage) => string][] = [
  ["the headers as JSON", ({ headers }) => JSON.stringify({ message: JSON.stringify(headers) })],
  ["the header in a Status", (request) => status(`no: ${request.headers.authorization}`)],
  ["the raw headers", ({ rawHeaders }) => status(rawHeaders.join(", "))],
  [
    "a page of a proxy",
    (request) => `<h1>Bad</h1><pre>Authorization: ${request.headers.authorization}</pre>`,
  ],
  ["the value alone", (request) => request.headers.authorization!.replace(/^\S+ /, "")],
  ["a part of the value", (request) => request.headers.authorization!.slice(14, 60)],
  ["escapes", (request) => status(request.headers.authorization!).replace(/[=/+.]/g, escapeUnit)],
  ["what it decoded", (request) => status(`user ${decoded(request)} is unknown`)],
  ["what it decoded, in HTML", (request) => decoded(request).replace(/&/g, "&amp;").replace(/"/g, "&quot;")],
  ["what it decoded, in a URL", (request) => `/login?p=${encodeURIComponent(decoded(request))}`],
];

const status = (message: string): string =>
  JSON.stringify({ kind: "Status", reason: "Unauthorized", message });
const escapeUnit = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;

function decoded({ headers }: IncomingMessage): string {
  const [scheme, value] = headers.authorization!.split(" ");
  return scheme === "Basic"
    ? Buffer.from(value!, "base64")
        .toString()
        .replace(/^admin:/, "")
    : value!;
}

/** Any 16 characters of a secret in a row are too much, in a message or anywhere in the error. */
function expectNothingOf(secrets: readonly string[], text: string): void {
  for (const secret of secrets) {
    const width = Math.min(16, secret.length);
    for (let i = 0; i + width <= secret.length; i++) expect(text).not.toContain(secret.slice(i, i + width));
  }
}

const show = (error: unknown): string =>
  inspect(error, { depth: 10, maxArrayLength: null, maxStringLength: null });

describe.each(WAYS)("a refusal that quotes %s", (_, quote) => {
  it.each([
    ["Bearer", `Bearer ${TOKEN}`, [TOKEN]],
    [
      "Basic",
      `Basic ${BASIC}`,
      [BASIC, PASSWORD, JSON.stringify(PASSWORD).slice(1, -1), encodeURIComponent(PASSWORD), HTML_PASSWORD],
    ],
  ])("does not show %s credentials", async (_scheme, authorization, secrets) => {
    for (const code of [401, 403, 404, 409, 422, 500, 302]) {
      const { leases } = await fake((request, response) => answer(response, code, quote(request)), {
        credentials: async (): Promise<Credentials> => ({ authorization }),
      });
      const asked = [
        leases.get("jobs", { signal: never }),
        leases.create("jobs", {}, { signal: never }),
        leases.watch("jobs", undefined, 1, never),
      ];
      const outcomes = await Promise.allSettled(asked);
      const errors = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
      expect(errors.length).toBeGreaterThan(0);
      for (const error of errors) expectNothingOf(secrets, show(error));
    }
  });
});

it("what the server says besides is told", async () => {
  const { leases } = await fake(
    (request, response) =>
      answer(response, 403, status(`${request.headers.authorization} may not read "leases"`)),
    { credentials: async () => ({ authorization: `Bearer ${TOKEN}` }) },
  );
  await expect(leases.get("jobs", { signal: never })).rejects.toThrow(
    /\(Bearer \*\*\* may not read "leases"\)/,
  );
});

/** Not HTTP: what came is kept by Node in the error. */
async function parrot(): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (request) => socket.end(request));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  after(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return (server.address() as AddressInfo).port;
}

it("an answer that is our own request is no leak", async () => {
  const { client } = await fake(() => {}, {
    server: new URL(`http://127.0.0.1:${await parrot()}`),
    credentials: async () => ({ authorization: `Bearer ${TOKEN}` }),
  });
  const error = await client
    .json({ method: "GET", path: "/", what: "asking" }, never)
    .catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "unavailable" });
  expect(show(error)).not.toContain("rawPacket");
});

describe("the command line", () => {
  async function kubeconfig(user: object, server: string): Promise<string> {
    const path = join(scratch(), "config");
    const config = {
      "current-context": "x",
      clusters: [{ name: "c", cluster: { server } }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      users: [{ name: "u", user }],
    };
    writeFileSync(path, JSON.stringify(config));
    return path;
  }

  it("does not show what a proxy echoes", async () => {
    const { access } = await fake((request, response) => answer(response, 403, request.rawHeaders.join(" ")));
    for (const user of [{ token: TOKEN }, { username: "admin", password: PASSWORD }]) {
      const path = await kubeconfig(user, access.server.href);
      const { code, out, err } = await conclave(["leader", "jobs", "--kubeconfig", path]);
      expect(code).toBe(3);
      expect(err).toMatch(/the API server answered 403/);
      expectNothingOf([TOKEN, BASIC, PASSWORD], out + err);
    }
  });

  it.each([
    ["a key that is none", { "client-key-data": Buffer.from("no key").toString("base64") }, "https"],
    ["a token with a line break", { token: `${TOKEN}\nX-Evil: 1` }, "http"],
  ])("%s is said to be bad credentials: 3, not 1 for nobody leads", async (_, user, scheme) => {
    const path = await kubeconfig(user, `${scheme}://127.0.0.1:1`);
    const { code, err } = await conclave(["leader", "jobs", "--kubeconfig", path]);
    expect(err).toMatch(/^conclave: [^\n]*the credentials cannot be used [^\n]*$/);
    expectNothingOf([TOKEN], err);
    expect(code).toBe(3);
  });
});
