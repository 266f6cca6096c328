/** Three candidates, one leader. It resigns, and the next one takes over. */
import { Election, memoryBackend } from "conclave";

const backend = memoryBackend();
const open = (id: string): Election => new Election({ name: "scheduler", backend, id });
const candidates = [open("red"), open("green"), open("blue")];

// Whoever leads says so, works for a moment, and resigns.
let terms = 0;
const done = new AbortController();
const running = candidates.map((election) =>
  election.run(
    async (term) => {
      terms += 1;
      const others = candidates.filter((other) => other !== election && other.leading);
      console.log(`term ${terms}: one leader, ${others.length} others lead at the same time`);
      if (terms === 3) done.abort();
      await term.resign();
    },
    { signal: done.signal },
  ),
);
await Promise.all(running);
await Promise.all(candidates.map((election) => election.close()));
console.log("closed, nothing left behind");
