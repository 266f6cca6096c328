#!/usr/bin/env node
import { main } from "./program.js";

/** A client library that leaves something open must not keep the command from ending. */
const PATIENCE_MS = 2_000;

// A reader that went away (`| head -1`) is no reason for a stack trace; commands stop when they notice.
process.stdout.on("error", () => {});
process.stderr.on("error", () => {});

process.exitCode = await main(process.argv.slice(2));
setTimeout(() => process.exit(), PATIENCE_MS).unref();
