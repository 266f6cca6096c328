/** Whether a command can be run, asked before anyone stands: an office is not for those who cannot serve. */
import { accessSync, constants, statSync } from "node:fs";
import { join } from "node:path";

/** As shells say it: 127 not found, 126 found but not executable, 0 fine. */
export function lookUp(command: string, path: string): 0 | 126 | 127 {
  if (command.includes("/")) return judge(command);
  let best: 126 | 127 = 127;
  for (const directory of path.split(":")) {
    const verdict = judge(join(directory === "" ? "." : directory, command));
    if (verdict === 0) return 0;
    if (verdict === 126) best = 126;
  }
  return best;
}

function judge(file: string): 0 | 126 | 127 {
  try {
    if (statSync(file).isDirectory()) return 126;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "EACCES" ? 126 : 127;
  }
  try {
    accessSync(file, constants.X_OK);
    return 0;
  } catch {
    return 126;
  }
}
