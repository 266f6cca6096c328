/** Writes docs/api.md from the built declarations: `npm run api`. */
import { readFileSync, writeFileSync } from "node:fs";
import { apiReport, entriesOf } from "./api-report-page.js";

const { page, complaints } = apiReport(".", entriesOf(readFileSync("package.json", "utf8")));
writeFileSync("docs/api.md", page);
for (const complaint of complaints) console.error(complaint);
if (complaints.length > 0) process.exitCode = 1;
