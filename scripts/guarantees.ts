/** Writes docs/guarantees.md: `npm run guarantees`. */
import { writeFileSync } from "node:fs";
import { rooms } from "../src/open.js";
import { guaranteesPage } from "./guarantees-page.js";

writeFileSync("docs/guarantees.md", await guaranteesPage(rooms));
