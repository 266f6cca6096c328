/** Whom an operator means: the readable part of an id is enough, and a name that nobody has is refused before anything is done. */
import { pathToFileURL, fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { fileBackend } from "../../src/backends/file/index.js";
import { Election } from "../../src/election/election.js";
import { onAbort } from "../../src/kit/wait.js";
import { until } from "../support/until.js";
import { inProcess, scratch } from "./process.js";

/** One that campaigns until the test is over; a follower is on the roster all the same. */
async function stand(url: string, id: string, roster: boolean): Promise<Election> {
  const backend = fileBackend({ directory: fileURLToPath(url) });
  const timing = { ttlMs: 10_000, retryMs: 100 };
  const election = new Election({
    ...{ name: "jobs", id, backend, closeBackend: true, controls: true, roster, ...timing },
  });
  onTestFinished(() => election.close());
  void election.run((term) => new Promise((resolve) => onAbort(term.signal, () => resolve())));
  if (roster)
    await until(async () =>
      (await election.candidates()).some(({ candidate }) => candidate === election.candidate),
    );
  return election;
}

const store = (): string => pathToFileURL(scratch()).href;

describe("a transfer to nobody", () => {
  it("is refused where a roster says who stands", async () => {
    const url = store();
    const a = await stand(url, "web-1", true);
    await until(() => a.leading);
    const b = await stand(url, "web-2", true);
    const { term } = a;
    const refused = await inProcess(["transfer", "jobs", "--to", "nobodyhere", "--backend", url]);
    expect(refused.code).toBe(2);
    expect(refused.err).toContain('no candidate "nobodyhere" stands in election "jobs": nothing was asked');
    expect(refused.err).toContain(b.candidate);
    expect(term!.held).toBe(true);
    expect(await inProcess(["transfer", "jobs", "--to", "web-2", "--backend", url])).toMatchObject({
      code: 0,
    });
    await until(() => b.leading);
  });

  it("says that this one did not take it, where nothing says who stands", async () => {
    const url = store();
    const a = await stand(url, "web-1", false);
    await until(() => a.leading);
    const { code, out } = await inProcess(["transfer", "jobs", "--to", "nobodyhere", "--backend", url]);
    expect(code).toBe(1);
    expect(out).toMatch(
      /has given leadership up; nobodyhere did not take it: (web-1-\w+ leads|nobody leads) now$/,
    );
  });
});

describe("--candidate with the readable part of an id", () => {
  it.each(["resign", "evict"])("means the leader in conclave %s, and no other", async (command) => {
    const url = store();
    const a = await stand(url, "web-1", false);
    await until(() => a.leading);
    const term = a.term!;
    const other = await inProcess([command, "jobs", "--candidate", "web", "--backend", url]);
    expect([other.code, other.out]).toEqual([1, expect.stringContaining("not web: nothing was")]);
    expect(term.held).toBe(true);
    const { code, out } = await inProcess([command, "jobs", "--candidate", "web-1", "--backend", url]);
    expect([code, out]).toEqual([0, expect.stringContaining(a.candidate)]);
    await term.ended;
  });

  it("is refused by evict if two candidates have it", async () => {
    const url = store();
    const a = await stand(url, "web-1", true);
    await until(() => a.leading);
    const b = await stand(url, "web-1", true);
    const { term } = a;
    const refused = await inProcess(["evict", "jobs", "--candidate", "web-1", "--backend", url]);
    expect(refused.code).toBe(2);
    for (const { candidate } of [a, b]) expect(refused.err).toContain(candidate);
    expect(term!.held).toBe(true);
    const exact = await inProcess(["evict", "jobs", "--candidate", a.candidate, "--backend", url]);
    expect(exact).toMatchObject({ code: 0 });
  });
});
