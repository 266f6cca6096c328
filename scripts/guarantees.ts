/** Writes docs/guarantees.md: `npm run guarantees`. */
import { writeFileSync } from "node:fs";
import { backends } from "../src/backends/registry.js";
import { guaranteesPage } from "./guarantees-page.js";

writeFileSync("docs/guarantees.md", await guaranteesPage(backends));
