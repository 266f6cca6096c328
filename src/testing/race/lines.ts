import type { Readable } from "node:stream";

/** Calls back for each line of a stream. (readline turns a reset connection into an error nobody listens to.) */
export function eachLine(stream: Readable, take: (line: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("error", () => stream.destroy());
  stream.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    for (const line of lines) take(line);
  });
}
