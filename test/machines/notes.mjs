/**
 * Loaded before a command or a snippet of the documentation (`--import`): notes when this process begins and ends to lead, and asks it
 * to resign after a moment, so that the other machine has its turn. What it hears is published by the library itself.
 */
import { subscribe } from "node:diagnostics_channel";
import { appendFileSync, readFileSync } from "node:fs";
import { hostname } from "node:os";

/** Long enough for the other machine to campaign, once its program has started. */
const HELD_MS = 700;
const notes = process.env["PASTED_NOTES"];
const machine = hostname();

function note(more) {
  appendFileSync(notes, `${JSON.stringify({ machine, at: Date.now(), ...more })}\n`);
}

function otherHasStarted() {
  return readFileSync(notes, "utf8")
    .split("\n")
    .some((line) => line.includes('"starts"') && !line.includes(`"machine":"${machine}"`));
}

note({ what: "starts" });
subscribe("conclave:elected", ({ election, term }) => {
  const token = `${term.token}`;
  note({ what: "leads", election, token });
  // Before the lease is given back: `ended` comes after that.
  term.signal.addEventListener("abort", () => note({ what: "stops", election, token }), { once: true });
  const look = setInterval(() => {
    if (!otherHasStarted()) return;
    clearInterval(look);
    setTimeout(() => void term.resign(), HELD_MS).unref();
  }, 50).unref();
});
