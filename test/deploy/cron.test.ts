/** deploy/kubernetes/cron.yaml, as far as it goes without a cluster: its schedule, and the scrape of its metrics. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { Cli, scratch } from "../cli/process.js";
import { ROOT } from "../shape/sources.js";
import { until } from "../support/until.js";

interface Port {
  readonly name: string;
  readonly containerPort?: number;
  readonly targetPort?: string;
}

interface Document {
  readonly kind: string;
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly ports?: readonly Port[];
    readonly selector?: Readonly<Record<string, string>> & {
      readonly matchLabels?: Readonly<Record<string, string>>;
    };
    readonly endpoints?: readonly {
      readonly port: string;
      readonly path: string;
      readonly authorization?: unknown;
    }[];
    readonly template?: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly containers: readonly { readonly args: readonly string[]; readonly ports: readonly Port[] }[];
      };
    };
  };
}

const documents = (file: string): Document[] =>
  parseAllDocuments(readFileSync(join(ROOT, "deploy/kubernetes", file), "utf8")).map(
    (one) => one.toJS() as Document,
  );

it(
  "runs the job, and Prometheus finds its metrics by the Service and the ServiceMonitor",
  { timeout: 60_000 },
  async () => {
    const all = documents("cron.yaml");
    const { template } = all.find(({ kind }) => kind === "Deployment")!.spec;
    const [container] = template!.spec.containers;
    const service = all.find(({ kind }) => kind === "Service")!;
    const monitor = documents("prometheus-operator/servicemonitor.yaml").find(({ spec }) =>
      Object.entries(spec.selector!.matchLabels!).every(
        ([name, value]) => service.metadata.labels![name] === value,
      ),
    )!;
    const [endpoint] = monitor.spec.endpoints!;
    const port = service.spec.ports!.find(({ name }) => name === endpoint!.port)!;
    const { containerPort } = container!.ports.find(({ name }) => name === port.targetPort)!;
    expect(container!.args).toContain(`--metrics=0.0.0.0:${containerPort}`);
    expect(template!.metadata.labels).toMatchObject(service.spec.selector!);
    expect(endpoint!.authorization).toBeUndefined(); // none is asked for

    const args = container!.args.map((word) =>
      word.replace("0 3 * * *", "* * * * * *").replace(`0.0.0.0:${containerPort}`, "0.0.0.0:0"),
    );
    const cli = new Cli([args[0]!, ...args.slice(1, 3), "--lock-dir", scratch(), ...args.slice(3)]);
    await cli.line(/^billing for .* under token \d+$/);
    const said = (): string => [...cli.out, ...cli.err].join("\n");
    const address = /metrics: http:\/\/[^:]+:(\d+)\/metrics/.exec(said())![1]!;
    let text = "";
    await until(async () => {
      text = await (await fetch(`http://127.0.0.1:${address}${endpoint!.path}`)).text();
      return /^conclave_cron_runs_total\{[^}]*outcome="done"[^}]*\} [1-9]/m.test(text);
    }, 30_000);
    expect(text).toMatch(/^conclave_leading\{[^}]*election="nightly-bill"[^}]*\} 1$/m);
    cli.kill("SIGTERM");
    await cli.exit;
  },
);
