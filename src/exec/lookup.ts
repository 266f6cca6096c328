/** Whether a command can be run, asked before anyone stands: an office is not for those who cannot serve. */
import { accessSync, constants, statSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../terminal/failure.js";

export type Command = readonly [file: string, ...args: string[]];

/** What stands after `--`. `usage`: what stands before it. */
export function commandOf(words: readonly string[], usage: string): Command {
  if (process.platform === "win32")
    throw new UsageError("running a command needs process groups, which Windows does not have");
  const [file, ...args] = words;
  if (file === undefined) throw new UsageError(`write the command after --: conclave ${usage} -- command`);
  return [file, ...args];
}

/** {@link lookUp} on our own path, and the words for it. */
export function findCommand(file: string): { readonly status: 0 | 126 | 127; readonly why: string } {
  const status = lookUp(file, process.env["PATH"] ?? "/usr/bin:/bin");
  const why = status === 127 ? "not found" : "cannot be executed";
  return { status, why: `${JSON.stringify(file)} ${why}` };
}

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
