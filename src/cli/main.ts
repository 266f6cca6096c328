#!/usr/bin/env node
/** What asks for the version alone does not wait for everything else to be loaded. */
import { version } from "./version.js";

const words = process.argv.slice(2);
if (words.length === 1 && (words[0] === "--version" || words[0] === "-V"))
  process.stdout.write(`${version()}\n`);
else await import("./start.js");
