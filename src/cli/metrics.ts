/** `--metrics` of commands that campaign: what Prometheus asks for, on a small server beside the command. */
import { InvalidArgumentError, Option } from "commander";
import type { Command } from "commander";
import type { Election } from "../election/election.js";
import { systemClock } from "../kit/clock.js";
import { openServer } from "../sidecar/server.js";
import { UsageError } from "../terminal/failure.js";
import { parseAddress } from "../terminal/listen.js";
import type { Address } from "../terminal/listen.js";
import type { WatchedSchedule } from "../metrics/index.js";

export interface MetricsOption {
  readonly metrics?: Address;
}

/** Scrapers, not visitors. */
const MOST_CONNECTIONS = 16;

export function addMetricsOption<C extends Command>(command: C): C {
  return command.addOption(
    new Option(
      "--metrics <port>",
      "answer GET /metrics for Prometheus on this port of 127.0.0.1, or on host:port (needs prom-client)",
    ).argParser((text: string) => {
      const address = parseAddress(text);
      if (address !== undefined) return address;
      throw new InvalidArgumentError("Write for example 9464, or 0.0.0.0:9464 for all addresses.");
    }),
  );
}

/** What is measured. */
export interface Measured {
  readonly election: Election;
  readonly schedule?: WatchedSchedule;
}

/** Serves metrics until it is disposed of. Without the option it does nothing. `say`: told where it listens. */
export async function serveMetrics(
  { metrics: address }: MetricsOption,
  { election, schedule }: Measured,
  say: (line: string) => void,
): Promise<AsyncDisposable> {
  if (address === undefined) return { [Symbol.asyncDispose]: async () => {} };
  const { ElectionMetrics, ScheduleMetrics } = await metricsModule();
  const elections = new ElectionMetrics();
  elections.watch(election);
  const { registry } = elections;
  if (schedule !== undefined) new ScheduleMetrics({ registry }).watch(schedule);
  const server = await openServer({
    ...address,
    clock: systemClock,
    mostConnections: MOST_CONNECTIONS,
    flag: "--metrics",
    handle: async (request, response) => {
      const path = request.method === "GET" ? request.url?.split("?")[0] : undefined;
      // For a container's health check: the process answers.
      if (path === "/healthz") response.writeHead(200, { "content-type": "text/plain" }).end("ok\n");
      else if (path === "/metrics")
        response.writeHead(200, { "content-type": registry.contentType }).end(await registry.metrics());
      else response.writeHead(404, { "content-type": "text/plain" }).end("try GET /metrics\n");
    },
  });
  say(`metrics: ${server.url}/metrics`);
  return { [Symbol.asyncDispose]: () => server.close() };
}

/** prom-client is an optional peer. Whoever asks for metrics wants to know that it is not there. */
async function metricsModule(): Promise<typeof import("../metrics/index.js")> {
  try {
    return await import("../metrics/index.js");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND")) throw error;
    throw new UsageError("--metrics needs prom-client, which is not installed: npm install prom-client");
  }
}
