/** deploy/kubernetes/sidecar.yaml, as far as it goes without a cluster: its sidecar, its program and the scrape beside it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { ask } from "../cli/http.js";
import { Cli, scratch } from "../cli/process.js";
import { ROOT } from "../shape/sources.js";

interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly readinessProbe?: { readonly httpGet: { readonly path: string } };
}

interface Document {
  readonly kind: string;
  readonly spec?: { readonly template?: { readonly spec: { readonly containers: readonly Container[] } } };
}

const read = (file: string): string => readFileSync(join(ROOT, "deploy/kubernetes", file), "utf8");
const TOKEN = "0123456789abcdefghij";

it("the program works while its sidecar leads; the kubelet and Prometheus get their answers by the pod's address", async () => {
  const documents = parseAllDocuments(read("sidecar.yaml")).map((document) => document.toJS() as Document);
  const pod = documents.find(({ kind }) => kind === "Deployment")!.spec!.template!.spec;
  const [program, conclave] = pod.containers;
  const args = conclave!.args.map((word) =>
    word.replace("0.0.0.0:4040", "0.0.0.0:0").replace("$(POD_IP)", "10.1.2.3"),
  );
  const sidecar = new Cli([...args, "--backend", `file://${scratch()}`], { CONCLAVE_SIDECAR_TOKEN: TOKEN });
  const port = /listening on .*:(\d+)/.exec(await sidecar.line(/listening on/))![1]!;
  await sidecar.line(/ELECTED/);

  const code = program!.args[0]!.replace("127.0.0.1:4040", `127.0.0.1:${port}`);
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    env: { CONCLAVE_SIDECAR_TOKEN: TOKEN },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    expect(line).toMatch(/^working under token \d+$/);
  } finally {
    child.kill("SIGKILL");
  }

  const [monitor] = parseAllDocuments(read("prometheus-operator/servicemonitor.yaml"));
  const { spec } = monitor!.toJS() as {
    spec: { endpoints: readonly { path: string; authorization: { type: string } }[] };
  };
  const [scrape] = spec.endpoints;
  const from = (path: string, headers: Record<string, string>): ReturnType<typeof ask> =>
    ask(`http://127.0.0.1:${port}${path}`, { headers: { host: "10.1.2.3:4040", ...headers } });
  const authorization = `${scrape!.authorization.type} ${TOKEN}`;
  expect((await from(scrape!.path, { authorization })).body).toMatch(/^conclave_leading\{.*\} 1$/m);
  expect((await from(scrape!.path, {})).status).toBe(401);
  expect((await from(conclave!.readinessProbe!.httpGet.path, {})).status).toBe(200);
  sidecar.kill("SIGTERM");
  expect(await sidecar.exit).toEqual({ code: 0, signal: null });
});
