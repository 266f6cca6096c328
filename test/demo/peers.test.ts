/** Peers with no server in the terminal; the network between them; and what follows from what they say. */
import { readdirSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { leadersOf, NO_ROLE, twoAtOnceMs } from "../../src/demo/peers/model.js";
import { noteOf } from "../../src/demo/peers/notes.js";
import { isOrders, isWord } from "../../src/demo/peers/wire.js";
import { Wires } from "../../src/demo/peers/wires.js";
import { ask, post } from "../cli/http.js";
import { Cli, scratch } from "../cli/process.js";
import { until } from "../support/until.js";

const play = (temporary: string, ...flags: string[]): Cli =>
  new Cli(["demo", "--no-ui", "--once", "--ttl", "1500ms", ...flags], { TMPDIR: temporary });

describe("conclave demo --peers", () => {
  it("raft: a killed leader, a network in two parts, a wiped disk; never two leaders, nothing left behind", async () => {
    const temporary = scratch();
    const cli = play(temporary, "--peers", "raft");
    const { code } = await cli.exit;
    const text = cli.out.join("\n");
    expect(code, text).toBe(0);
    expect(text).toMatch(/votes for (n\d|itself) in term …\d+: on its disk before it answers/);
    expect(text).toMatch(/n\d → n\d in \d+ ms; the lease of n\d had to run out/);
    expect(text).toMatch(/stops: no majority has acknowledged a beat of term …\d+ in time/);
    expect(text).toMatch(/n\d leads; n\d: no majority, so no leader/);
    expect(text).toMatch(/n\d takes part again after \d+ ms/);
    expect(text).toMatch(/two leaders at once: never/);
    expect(readdirSync(temporary)).toEqual([]);
  }, 120_000);

  it("bully: the highest leads, comes back and takes over; in two parts two lead, and it says so", async () => {
    const temporary = scratch();
    const cli = play(temporary, "--peers", "bully");
    const { code } = await cli.exit;
    const text = cli.out.join("\n");
    expect(code, text).toBe(0);
    for (const word of ["ELECTION", "ANSWER", "COORDINATOR"]) expect(text).toContain(word);
    expect(text).toMatch(/‼ n\d and n\d lead at once/);
    expect(text).toMatch(
      /n3 and n2 lead at once: each side has a leader|n2 and n3 lead at once: each side has a leader/,
    );
    expect(text).toMatch(/two leaders at once: [\d.]+ m?s/);
    expect(readdirSync(temporary)).toEqual([]);
  }, 120_000);

  it("refuses what makes no sense", async () => {
    const even = play(scratch(), "--peers", "raft", "--nodes", "4");
    expect((await even.exit).code).toBe(2);
    expect(even.err.join("\n")).toMatch(/--nodes is 4; with --peers write 3, 5, 7/);
    const other = play(scratch(), "--peers", "paxos");
    expect((await other.exit).code).toBe(2);
  }, 30_000);

  it("takes orders that make sense, from who has the token", async () => {
    const cli = new Cli(["demo", "--ui", "--peers", "raft", "--ttl", "1500ms"], { TMPDIR: scratch() });
    const [, url, token] = /^page: (http:\/\/[^/]+)\/ui#token=(\S+)$/.exec(await cli.line(/^page: /))!;
    await cli.line(/leads, term/);
    const order = async (path: string, secret?: string): Promise<number> =>
      (await post(`${url}/peers/${path}`, secret)).status;
    expect(await order("n1/kill")).toBe(401);
    expect((await ask(`${url}/peers/n1/kill`)).status).toBe(405);
    for (const path of [
      "n9/kill",
      "n1/constructor",
      "n1/n9/cut",
      "n1/n2/burn",
      "n1/n1/cut",
      "begin/4",
      "begin/x",
      "n1/n2/cut/x",
    ])
      expect(await order(path, token), path).toBe(404);
    for (const path of ["n1/thaw", "n1/start", "n1/n2/heal"])
      expect(await order(path, token), path).toBe(409);
    expect((await post(`${url}/nodes`, token)).status).toBe(404);
    expect((await post(`${url}/dialer/week`, token)).status).toBe(404);
    expect(await order("n1/n2/cut", token)).toBe(200);
    await cli.line(/\[n1\] does not reach n2 any more/);
    cli.kill("SIGTERM");
    expect((await cli.exit).code).toBe(0);
  }, 60_000);
});

describe("the network between peers", () => {
  it("a link cut in one direction holds what is sent that way, and lets nothing new be connected", async () => {
    const heard: string[] = [];
    const callees: Socket[] = [];
    const server = createServer((socket) => {
      callees.push(socket);
      socket.on("data", (bytes) => heard.push(bytes.toString()));
      socket.on("error", () => {});
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const wires = new Wires(["a", "b"]);
    const dial = await wires.lay({ a: port, b: port });
    const reach = (): Socket => connect(Number(dial.get("a")!["b"]!.split(":")[1]), "127.0.0.1");
    const caller = reach();
    const answered: string[] = [];
    caller.on("data", (bytes) => answered.push(bytes.toString()));
    try {
      caller.write("one");
      await until(() => heard.join("") === "one");
      wires.cut("a", "b", true);
      caller.write("two");
      callees[0]!.write("back");
      await until(() => answered.join("") === "back");
      expect(heard.join("")).toBe("one");
      const late = reach();
      await once(late, "connect");
      late.write("three");
      wires.cut("b", "a", true);
      callees[0]!.write("again");
      wires.cut("a", "b", false);
      await until(() => heard.join("") === "onetwo");
      expect([callees.length, answered.join("")]).toEqual([1, "back"]);
      wires.cut("b", "a", false);
      await until(() => heard.join("").includes("three") && answered.join("") === "backagain");
      expect(wires.links).toMatchObject([
        { from: "a", to: "b", cut: false, sent: 3 },
        { from: "b", to: "a", cut: false, sent: 2 },
      ]);
    } finally {
      wires.close();
      for (const socket of callees) socket.destroy();
      server.close();
    }
  });
});

describe("what follows from what peers say", () => {
  it("two at once are counted while both may act, not longer", () => {
    const terms = [
      { node: "n1", token: "1", from: 100, deadline: 400 },
      { node: "n2", token: "2", from: 300, to: 500, deadline: 900 },
      { node: "n3", token: "3", from: 500, deadline: 2_000 },
    ];
    expect(leadersOf(terms, 350)).toEqual(["n1", "n3"]);
    expect(leadersOf(terms, 600)).toEqual(["n3"]);
    expect(twoAtOnceMs(terms, 1_000)).toBe(100);
    expect(twoAtOnceMs([{ node: "n1", token: "1", from: 1 }], 9)).toBe(0);
  });

  it("a vote is told once, and why a voter takes no part", () => {
    const ballot = { term: "1795018599", vote: "n2", leader: null, promised: null, unfit: null };
    const word = { kind: "ballot", at: 0, ...ballot } as const;
    expect(noteOf("n1", word, NO_ROLE)?.text).toBe(
      "votes for n2 in term …18599: on its disk before it answers",
    );
    expect(noteOf("n1", word, { ...NO_ROLE, ballot })).toBeUndefined();
    const unfit = "this voter has no journal and waits for all other voters: voter x is not there";
    expect(noteOf("n1", { ...word, unfit }, NO_ROLE)?.text).toBe(
      "takes no part: it has no journal and waits for all other voters",
    );
    expect(noteOf("n1", word, { ...NO_ROLE, ballot: { ...ballot, unfit } })?.text).toBe("takes part");
    expect(noteOf("n1", { ...word, leader: "n3", vote: null }, NO_ROLE)?.text).toBe(
      "acknowledges n3 as leader of term …18599",
    );
  });

  it("is looked at before it is believed", () => {
    const orders = { name: "n1", ttlMs: 1, directory: "d", parts: [] };
    expect(isOrders(orders)).toBe(true);
    for (const key of Object.keys(orders)) expect(isOrders({ ...orders, [key]: undefined }), key).toBe(false);
    expect(isOrders({ ...orders, parts: [{ algorithm: "paxos", peers: [], dial: {} }] })).toBe(false);
    const elected = { kind: "elected", algorithm: "raft", at: 1, token: "2", remainingMs: 3 };
    expect(isWord(elected)).toBe(true);
    for (const key of Object.keys(elected)) expect(isWord({ ...elected, [key]: {} }), key).toBe(false);
    const ballot = {
      kind: "ballot",
      at: 1,
      term: "2",
      vote: null,
      leader: null,
      promised: null,
      unfit: null,
    };
    expect(isWord(ballot)).toBe(true);
    for (const key of Object.keys(ballot)) expect(isWord({ ...ballot, [key]: 7n }), key).toBe(false);
    for (const bad of [null, 5, {}, { kind: "x" }]) expect(isWord(bad)).toBe(false);
  });
});
