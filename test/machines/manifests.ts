/** The files of deploy/ that start a candidate, and the store that they tell it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, files } from "../shape/sources.js";

export interface Manifest {
  readonly file: string;
  /** Empty: none is named. */
  readonly store: string;
}

const STARTS =
  /(?:args|command): \["(?:run|serve|exec|lock|cron)"|^\s+- cron$|^ExecStart=\S*conclave (?:run|exec|cron|lock|serve)\b/m;
/** In a unit of systemd the remark says what the file of variables holds; without that file the unit does not start. */
const STORE = /CONCLAVE_BACKEND(?:: |=|\n\s+value: )"?([a-z]+:[^\s"]*)/;

export function manifests(): Manifest[] {
  return [...files("deploy", ".yaml"), ...files("deploy", ".service")].flatMap((file) => {
    const text = readFileSync(join(ROOT, file), "utf8");
    return STARTS.test(text) ? [{ file, store: STORE.exec(text)?.[1] ?? "" }] : [];
  });
}
