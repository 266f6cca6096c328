import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { invalid } from "../../kit/errors.js";
import type { BackendEntry } from "../../seam/entry.js";

export const file: BackendEntry = {
  name: "file",
  title: "files",
  schemes: ["file"],
  example: "file:///directory",
  flags: {
    where: [
      {
        name: "lock-dir",
        argument: "dir",
        help: "files in this directory; the same as --backend file:///dir",
      },
    ],
    url: ({ "lock-dir": directory = "" }) => {
      if (directory === "" || resolve(directory) === resolve("/"))
        throw invalid("--lock-dir must name a directory of its own");
      return pathToFileURL(resolve(directory)).href;
    },
  },
  open: async (url, options) => (await import("./url.js")).openFile(url, options),
  guarantees: async () => (await import("./index.js")).fileBackend().guarantees,
  where: async (url) => {
    const { fileOptions } = await import("./url.js");
    const { openDirectory } = await import("./index.js");
    const chosen = fileOptions(url);
    const directory = await openDirectory(chosen);
    return chosen.directory === undefined ? `${directory} (the default directory)` : directory;
  },
};
