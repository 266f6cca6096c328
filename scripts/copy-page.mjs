#!/usr/bin/env node
/** The page is written by hand and not compiled: its files go to dist/ as they are. */
import { cpSync } from "node:fs";

const at = (path) => new URL(`../${path}`, import.meta.url);
cpSync(at("src/dashboard/page"), at("dist/dashboard/page"), {
  recursive: true,
  filter: (path) => !path.endsWith("tsconfig.json"),
});
