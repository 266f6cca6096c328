/** What a backend warns of reaches whoever watches the command line. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { freePorts } from "../support/free-ports.js";
import { Cli, scratch } from "./process.js";

it.each(["text", "json"])(
  "a voter whose others are not there says once for whom it waits (--log %s)",
  async (log) => {
    const directory = scratch();
    const keyFile = join(directory, "key");
    writeFileSync(keyFile, "k".repeat(64), { mode: 0o600 });
    const [one, two, three] = await freePorts(3);
    const peers = `n1@127.0.0.1:${one},n2@127.0.0.1:${two},n3@127.0.0.1:${three}`;
    const url = `raft://${peers}?self=n1&dir=${directory}/n1&key-file=${keyFile}`;
    const cli = new Cli(["run", "x", "--log", log, "--backend", url]);
    await cli.errLine(/^conclave: WARNING: voter "n1": this voter has no journal and waits for n2, n3: /);
    cli.kill("SIGTERM");
    expect((await cli.exit).code).toBe(0);
    expect(cli.err.filter((line) => line.includes("has no journal"))).toHaveLength(1);
  },
);
