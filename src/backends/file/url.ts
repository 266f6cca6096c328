/** `file:///directory`, or `file:` for the user's own directory. */
import { fileURLToPath } from "node:url";
import type { Backend } from "../../seam/backend.js";
import { invalid } from "../../kit/errors.js";
import type { FileBackendOptions } from "./index.js";
import { fileBackend } from "./index.js";

const SWITCHES = { "dead-process-rule": "deadProcessRule", "allow-network-fs": "allowNetworkFs" } as const;

export async function openFile(
  url: URL,
  { processes }: Pick<FileBackendOptions, "processes"> = {},
): Promise<Backend> {
  return fileBackend({ ...fileOptions(url), processes });
}

/** What a URL says. Parameters: `dead-process-rule` and `allow-network-fs`, each `true` or `false`. */
export function fileOptions(
  url: URL,
): Pick<FileBackendOptions, "directory" | "deadProcessRule" | "allowNetworkFs"> {
  if (url.host !== "") {
    throw invalid(`"${url.host}" in the file URL is a host; write three slashes: file:///directory`);
  }
  const switches: Partial<Record<(typeof SWITCHES)[keyof typeof SWITCHES], boolean>> = {};
  for (const [key, value] of url.searchParams) {
    if (key !== "dead-process-rule" && key !== "allow-network-fs") {
      throw invalid(
        `unknown parameter "${key}" in the file URL; known are ${Object.keys(SWITCHES).join(", ")}`,
      );
    }
    if (value !== "true" && value !== "false")
      throw invalid(`${key} in the file URL is true or false, not "${value}"`);
    switches[SWITCHES[key]] = value === "true";
  }
  // `file:` is read as `file:///`; nobody means the root of the file system.
  return { directory: url.pathname === "/" ? undefined : pathOf(url), ...switches };
}

function pathOf(url: URL): string {
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw invalid(
      `the file URL holds no path that can be used: ${cause instanceof Error ? cause.message : "?"}`,
    );
  }
}
