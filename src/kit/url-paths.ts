/** Parameters of a URL that name files: another process, in another directory, must find the same ones. */

/**
 * The URL with `absolute` paths in these parameters; all else stays as it was
 * written. Taken apart by hand: several hosts with ports are no URL to Node.
 */
export function withAbsolutePaths(
  url: string,
  parameters: readonly string[],
  absolute: (path: string) => string,
): string {
  const at = url.indexOf("?");
  if (at < 0) return url;
  const rewritten = url
    .slice(at + 1)
    .split("&")
    .map((part) => {
      const [[name, value] = ["", ""]] = new URLSearchParams(part);
      if (!parameters.includes(name) || value === "") return part;
      const path = absolute(value);
      return path === value
        ? part
        : `${name}=${encodeURIComponent(path).replaceAll("%2F", "/").replaceAll("%3A", ":")}`;
    });
  return `${url.slice(0, at + 1)}${rewritten.join("&")}`;
}
