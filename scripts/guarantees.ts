/** Writes docs/guarantees.md. `npm run guarantees` */
import { writeFileSync } from "node:fs";
import { backendCatalogue } from "./catalogue.js";
import { guaranteesPage } from "./guarantees-page.js";

writeFileSync("docs/guarantees.md", guaranteesPage(backendCatalogue));
