/** What feeds the demo's page, and what it may do: asked without a browser. */
import { request as httpRequest } from "node:http";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CuttableFileSystem } from "../../src/demo/faults.js";
import type { DemoState } from "../../src/demo/model.js";
import { ask, post, takenPort, until } from "../cli/http.js";
import { Cli, scratch } from "../cli/process.js";

interface Page {
  readonly url: string;
  readonly token: string;
  state(): DemoState | undefined;
  close(): void;
}

async function open(cli: Cli): Promise<Page> {
  const line = await cli.line(/^page: /);
  const [, url, token] = /^page: (http:\/\/[^/]+)\/ui#token=(\S+)$/.exec(line)!;
  let text = "";
  const request = httpRequest(`${url}/events`, { agent: false }, (response) => {
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => (text += chunk));
    response.on("error", () => {});
  });
  request.on("error", () => {});
  request.end();
  const state = (): DemoState | undefined => {
    const last = text.split("\n\n").slice(0, -1).at(-1);
    const data = last === undefined ? undefined : /^data: (.+)$/m.exec(last)?.[1];
    text = last === undefined ? text : `${last}\n\n${text.slice(text.lastIndexOf("\n\n") + 2)}`;
    return data === undefined ? undefined : (JSON.parse(data) as { state: DemoState }).state;
  };
  return { url: url!, token: token!, state, close: () => request.destroy() };
}

function demo(...flags: string[]): Cli {
  return new Cli(["demo", "--ttl", "1500ms", ...flags], { TMPDIR: scratch() });
}

describe("the demo's page", () => {
  it("takes no orders from strangers", async () => {
    const cli = demo("--nodes", "1");
    const { url, token, close } = await open(cli);
    const order = `${url}/nodes/node1/kill`;
    expect((await post(order)).status).toBe(401);
    expect((await post(order, `${token}x`)).status).toBe(401);
    expect((await post(order, token, { origin: "http://evil.example" })).status).toBe(403);
    expect((await post(order, token, { host: "evil.example" })).status).toBe(403);
    expect((await ask(order)).status).toBe(405);
    expect((await ask(url, { headers: { host: "evil.example" } })).status).toBe(403);
    expect((await ask(`${url}/events`, { headers: { origin: "http://evil.example" } })).status).toBe(403);
    expect((await post(`${url}/nodes/node9/kill`, token)).status).toBe(404);
    expect((await post(`${url}/nodes/node1/constructor`, token)).status).toBe(404);
    expect((await post(`${url}/nodes/node1/thaw`, token)).status).toBe(409);
    expect((await post(`${url}/nodes/node1/remove`, token)).status).toBe(409);
    const calls = `${url}/dialer/week`;
    expect((await post(calls)).status).toBe(401);
    expect((await post(calls, token, { origin: "http://evil.example" })).status).toBe(403);
    expect((await ask(calls)).status).toBe(405);
    for (const which of ["/never", "/constructor", "/week/kill", "/%E0%A4%A", ""])
      expect((await post(`${url}/dialer${which}`, token)).status, which).toBe(404);
    const large = { method: "POST", headers: { authorization: `Bearer ${token}` }, body: "x".repeat(20_000) };
    expect((await ask(order, large)).status).toBe(413);
    for (const path of ["/", "/ui"]) {
      const { status, headers } = await ask(`${url}${path}`);
      expect(status).toBe(200);
      expect(headers["content-security-policy"]).toContain("default-src 'none'");
    }
    close();
    cli.kill("SIGTERM");
    expect((await cli.exit).code).toBe(0);
  });

  it("shows and does everything: resign, cut off, heal, kill, start, add, remove", async () => {
    const cli = demo("--nodes", "2");
    const page = await open(cli);
    const order = async (node: string, action: string): Promise<void> =>
      expect(await post(`${page.url}/nodes/${node}/${action}`, page.token)).toMatchObject({ status: 200 });
    const node = (name: string) => page.state()?.nodes.find((view) => view.name === name);
    const leader = () => page.state()?.nodes.find(({ state }) => state === "leader")?.name;
    const newLeader = async (than: string): Promise<string> => {
      await until(`another than ${than}`, () => leader() !== undefined && leader() !== than);
      return leader()!;
    };
    const first = await newLeader("");
    await until("its lease is shown", () => page.state()?.terms.at(-1)?.deadline !== undefined);
    await order(first, "resign");
    const second = await newLeader(first);
    await order(second, "cut");
    await until("it is in jeopardy", () => node(second)?.jeopardy === true);
    const third = await newLeader(second);
    expect(node(second)).toMatchObject({ cut: true, state: "follower" });
    await order(second, "heal");
    expect((await post(`${page.url}/nodes`, page.token)).status).toBe(200);
    await until("a third node stands", () => node("node3")?.state === "follower");
    await order(third, "kill");
    await newLeader(third);
    await until("the killed one is dead", () => node(third)?.state === "gone");
    await order(third, "start");
    await until("it campaigns again", () => node(third)?.state === "follower");
    await order(third, "remove");
    await until("it has left", () => page.state()?.nodes.length === 2);
    const state = page.state()!;
    // Each term has one token, higher than the last, and ended before the next began.
    for (const [index, term] of state.terms.entries()) {
      const next = state.terms[index + 1];
      if (next === undefined) continue;
      expect(BigInt(next.token)).toBeGreaterThan(BigInt(term.token));
      expect(term.to).toBeLessThanOrEqual(next.from);
    }
    expect(state.terms.map(({ reason }) => reason)).toEqual(
      expect.arrayContaining(["resigned", "expired", "killed"]),
    );
    await until("operations are counted", () =>
      page.state()!.nodes.some(({ opsPerSecond }) => opsPerSecond > 0),
    );
    page.close();
    cli.kill("SIGTERM");
    expect((await cli.exit).code).toBe(0);
  }, 90_000);

  it("starts the double dialer, one at a time, and takes it down with the demo", async () => {
    const temporary = scratch();
    const cli = new Cli(["demo", "--nodes", "1"], { TMPDIR: temporary });
    const { url, token, close } = await open(cli);
    expect((await post(`${url}/dialer/frozen`, token)).status).toBe(200);
    expect(await post(`${url}/dialer/week`, token)).toMatchObject({ status: 409 });
    close();
    cli.kill("SIGTERM");
    expect((await cli.exit).code).toBe(0);
    expect(readdirSync(temporary)).toEqual([]);
  }, 60_000);

  it("is not needed: where it cannot be served the terminal still shows the demo", async () => {
    const taken = await takenPort();
    const without = demo("--nodes", "1", "--listen", String(taken.port));
    await without.line(/^no page: cannot listen/);
    await without.line(/elected, token/);
    without.kill("SIGTERM");
    expect((await without.exit).code).toBe(0);
    const insisting = demo("--nodes", "1", "--ui", "--listen", String(taken.port));
    expect((await insisting.exit).code).toBe(2);
    await taken.free();
    const off = demo("--nodes", "1", "--no-ui");
    await off.line(/elected, token/);
    expect(off.out.join("\n")).not.toMatch(/page/);
    off.kill("SIGTERM");
    await off.exit;
  }, 60_000);
});

describe("a node cut off from its store", () => {
  it("hangs while cut, fails what hung, and works again when healed", async () => {
    const directory = join(scratch(), "x");
    mkdirSync(directory);
    const fs = new CuttableFileSystem();
    expect(await fs.list(directory)).toEqual([]);
    fs.cut();
    let settled = false;
    const hanging = fs.list(directory).finally(() => (settled = true));
    hanging.catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(settled).toBe(false);
    fs.heal();
    await expect(hanging).rejects.toThrow(/cut off/);
    expect(await fs.list(directory)).toEqual([]);
    expect(fs.takeCalls()).toBe(3);
    expect(fs.takeCalls()).toBe(0);
  });
});
