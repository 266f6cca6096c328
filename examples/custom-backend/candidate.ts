/** The program that the conformance suite stops and kills: node candidate.js HOST:PORT ELECTION TTL_MS */
import { Election } from "conclave";
import { probe } from "conclave/testing";
import { etagBackend } from "./backend.js";

const [address, name, ttlMs] = process.argv.slice(2);
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

await using backend = etagBackend(address!);
const election = new Election({ name: name!, backend, ttlMs: Number(ttlMs) });
await probe({ election, write: (line) => process.stdout.write(`${line}\n`), signal: stop.signal });
