/**
 * Server-sent events, read by hand: unlike EventSource this can send a token,
 * which a server beyond this machine asks for.
 */

const RETRY_MS = 1000;
const SLOWEST_RETRY_MS = 8000;

/**
 * Reads until the page is closed; a stream that breaks is opened again.
 * @param {string} url
 * @param {object} options
 * @param {() => string | null} options.token
 * @param {(event: string, data: any) => void} options.onEvent
 * @param {(state: "live" | "lost") => void} options.onLink
 * @param {() => Promise<void>} options.askToken resolves when there may be another token
 */
export async function follow(url, { token, onEvent, onLink, askToken }) {
  for (let failures = 0; ; failures++) {
    try {
      const secret = token();
      const response = await fetch(url, {
        headers: secret === null ? {} : { authorization: `Bearer ${secret}` },
        cache: "no-store",
      });
      if (response.status === 401) {
        await askToken();
        failures = 0;
        continue;
      }
      if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
      onLink("live");
      failures = 0;
      await read(response.body, onEvent);
    } catch {
      // The server is gone or was never there: said below, tried again.
    }
    onLink("lost");
    await new Promise((resolve) => setTimeout(resolve, Math.min(SLOWEST_RETRY_MS, RETRY_MS * 2 ** failures)));
  }
}

/**
 * @param {ReadableStream<Uint8Array>} body
 * @param {(event: string, data: any) => void} onEvent
 */
async function read(body, onEvent) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) emit(block, onEvent);
  }
}

/**
 * @param {string} block
 * @param {(event: string, data: any) => void} onEvent
 */
function emit(block, onEvent) {
  const field = (/** @type {string} */ name) =>
    block
      .split("\n")
      .filter((line) => line.startsWith(`${name}: `))
      .map((line) => line.slice(name.length + 2))
      .join("\n");
  const data = field("data");
  if (data === "") return;
  try {
    onEvent(field("event"), JSON.parse(data));
  } catch (error) {
    reportError(error); // a fault of this page, not of the connection
  }
}
