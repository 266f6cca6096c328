/** What operators do to an election, on any store: two candidates of the library, and the commands. */
import { expect } from "vitest";
import { Election } from "../../src/election/election.js";
import { onAbort } from "../../src/kit/wait.js";
import { openBackend } from "../../src/open.js";
import { inProcess } from "../cli/process.js";
import { until } from "../support/until.js";

const TTL_MS = 3_000;

type Json = Readonly<Record<string, unknown>>;

export async function run(
  url: string,
  ...args: string[]
): Promise<{ code: number | null; lines: Json[]; said: string }> {
  const { code, out, err } = await inProcess([...args, "--backend", url, "--json"]);
  const lines = out.split("\n").filter((line) => line.startsWith("{"));
  return { code, lines: lines.map((line) => JSON.parse(line) as Json), said: `${out}\n${err}` };
}

/** A candidate that campaigns until it is closed. */
export async function stand(url: string, name: string, id: string): Promise<Election> {
  const backend = await openBackend(url);
  const election = new Election({
    name,
    id,
    backend,
    closeBackend: true,
    controls: true,
    history: true,
    ttlMs: Math.max(TTL_MS, backend.guarantees.ttl.minMs),
    retryMs: 200,
  });
  void election.run((term) => new Promise((resolve) => onAbort(term.signal, () => resolve())));
  return election;
}

/** Everything in a row, since starting a server takes longer than all of it. */
export async function operate(url: string, name: string, after: "removed" | "kept"): Promise<void> {
  const a = await stand(url, name, "a");
  await until(() => a.leading);
  const b = await stand(url, name, "b");
  try {
    const first = a.term!;
    expect((await run(url, "list", name)).lines).toMatchObject([
      { election: name, candidate: a.candidate, token: `${first.token}`, paused: false },
    ]);
    await resignation(url, name, a, b);
    await pauses(url, name, a, b);
    const refused = await run(url, "forget", name, "--timeout", "500ms");
    expect(refused, refused.said).toMatchObject({ code: 1, lines: [{ event: "in-use" }] });
  } finally {
    await Promise.all([a.close(), b.close()]);
  }
  const last = await recorded(url, name, a);
  await forgotten(url, name, after, last);
}

/** A leader that this library did not start: of another language, or by hand. */
export interface ForeignLeader {
  /** As `conclave leader` shows it. */
  readonly candidate: string | RegExp;
  stop(): Promise<void>;
}

/** It is shown; it does not listen, which is said; and it protects its election from being forgotten. */
export async function operateForeign(url: string, name: string, leader: ForeignLeader): Promise<void> {
  try {
    const listed = await run(url, "list", name);
    expect(listed.lines[0]?.["candidate"], listed.said).toMatch(leader.candidate);
    const asked = await run(url, "resign", name, "--timeout", "1s");
    expect(asked, asked.said).toMatchObject({ code: 5, lines: [{ event: "unheard" }] });
    expect(asked.said).toContain("conclave evict");
    expect(await run(url, "history", name)).toMatchObject({ code: 1 });
    expect(await run(url, "forget", name, "--timeout", "500ms")).toMatchObject({ code: 1 });
    expect((await run(url, "list", name)).lines[0]?.["candidate"]).toMatch(leader.candidate);
  } finally {
    await leader.stop();
  }
}

/** Nothing is left that is listed, unless it is said; and the next token is higher than all before. */
async function forgotten(url: string, name: string, after: "removed" | "kept", last: bigint): Promise<void> {
  const { code, lines, said } = await run(url, "forget", name);
  expect(code, said).toBe(0);
  expect(lines).toMatchObject([{ event: after }]);
  const names = (await run(url, "list")).lines.map(({ election }) => election);
  if (after === "removed") expect(names).not.toContain(name);
  expect(await run(url, "history", name)).toMatchObject({ code: 1 });
  const again = await stand(url, name, "again");
  await until(() => again.leading, 20_000);
  const { token } = again.term!;
  await again.close();
  expect(token).toBeGreaterThan(last);
}

async function resignation(url: string, name: string, a: Election, b: Election): Promise<void> {
  const first = a.term!;
  const other = await run(url, "resign", name, "--candidate", b.candidate);
  expect(other).toMatchObject({ code: 1, lines: [{ event: "other" }] });
  const { code, lines, said } = await run(url, "resign", name, "--timeout", "20s");
  expect(code, said).toBe(0);
  expect(lines).toMatchObject([{ event: "resigned", candidate: a.candidate, token: `${first.token}` }]);
  expect(first.end).toMatchObject({ reason: "resigned", drained: true });
  await until(() => a.leading || b.leading);
}

async function pauses(url: string, name: string, a: Election, b: Election): Promise<void> {
  const stayed = await run(url, "pause", name);
  expect(stayed).toMatchObject({ code: 0, lines: [{ event: "paused" }] });
  expect(a.leading || b.leading).toBe(true);
  let elected = 0;
  const offs = [a, b].map((one) => one.on("elected", () => elected++));
  const { code, lines, said } = await run(url, "pause", name, "--resign", "--timeout", "20s");
  expect(code, said).toBe(0);
  expect(lines).toMatchObject([{ event: "paused", candidate: null }]);
  // Longer than every retry of theirs: both have had their chance.
  await new Promise((resolve) => setTimeout(resolve, TTL_MS / 2));
  expect(elected).toBe(0);
  expect((await run(url, "status", name)).lines).toMatchObject([{ candidate: null, paused: true }]);
  expect(await run(url, "unpause", name)).toMatchObject({ code: 0, lines: [{ event: "unpaused" }] });
  expect((await run(url, "unpause", name)).code).toBe(1);
  await until(() => a.leading || b.leading, 20_000);
  for (const off of offs) off();
}

/** Returns the highest token. */
async function recorded(url: string, name: string, a: Election): Promise<bigint> {
  const { code, lines, said } = await run(url, "history", name);
  expect(code, said).toBe(0);
  expect(lines.length).toBeGreaterThanOrEqual(3);
  expect(lines[0]).toMatchObject({ candidate: a.candidate, reason: "resigned" });
  expect(lines.at(-1)).toMatchObject({ reason: "closed" });
  expect(lines.every(({ lastedMs }) => typeof lastedMs === "number")).toBe(true);
  const [listed] = (await run(url, "list", name)).lines;
  expect(listed).toMatchObject({ candidate: null, terms: lines.length });
  return BigInt(String(lines.at(-1)!["token"]));
}
