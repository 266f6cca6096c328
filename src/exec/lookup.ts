/** Checks the command before campaigning, so that a host that cannot run it never leads. */
import { accessSync, constants, statSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../terminal/failure.js";

export type Command = readonly [file: string, ...args: string[]];

/** The words after `--`. `usage`: those before it. */
export function commandOf(words: readonly string[], usage: string): Command {
  if (process.platform === "win32")
    throw new UsageError("running a command needs process groups, which Windows does not have");
  const runtime = otherRuntime(process.versions);
  if (runtime !== undefined)
    throw new UsageError(
      `running a command needs pipes that ${runtime} does not hand over: start conclave with Node`,
    );
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
  if (command.includes("/")) return executableStatus(command);
  let best: 126 | 127 = 127;
  for (const directory of path.split(":")) {
    const status = executableStatus(join(directory === "" ? "." : directory, command));
    if (status === 0) return 0;
    if (status === 126) best = 126;
  }
  return best;
}

function executableStatus(file: string): 0 | 126 | 127 {
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

/** Runtimes that load the library, but whose child processes cannot share the pipes by which the watchdog works. */
export function otherRuntime(versions: Readonly<Record<string, string | undefined>>): string | undefined {
  if (versions["bun"] !== undefined) return "Bun";
  return versions["deno"] === undefined ? undefined : "Deno";
}
