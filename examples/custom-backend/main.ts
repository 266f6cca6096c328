/** Two candidates on a backend of our own: one leads, resigns, and the other takes over with a higher token. */
import { Election } from "conclave";
import { etagBackend } from "./backend.js";
import { startStore } from "./server.js";

const store = await startStore();
const backend = etagBackend(`127.0.0.1:${store.port}`);
const first = new Election({ name: "printer", backend, id: "first", value: "desk 1" });
const second = new Election({ name: "printer", backend, id: "second", value: "desk 2", retryMs: 100 });

const term = await first.campaign();
console.log(`the first leads: ${term.held}`);
console.log(`the second sees: ${(await second.leader())?.value}`);
const waiting = second.campaign();
await term.resign();
const next = await waiting;
console.log(`the second leads: ${next.held}, with a higher token: ${next.token > term.token}`);

await first.close();
await second.close();
await backend[Symbol.asyncDispose]();
await store[Symbol.asyncDispose]();
