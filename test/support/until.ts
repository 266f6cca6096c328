/** Waits until something is so. For tests: looks every few milliseconds, gives up loudly. */
export async function until(so: () => boolean | Promise<boolean>, limitMs = 10_000): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await so())) {
    if (performance.now() > end) throw new Error(`not so after ${limitMs} ms: ${so.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
