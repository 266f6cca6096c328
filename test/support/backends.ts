/** Stores that processes can share, for tests over all of them. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { onTestFinished } from "vitest";
import { NOT_RUN, required, source, startServer } from "../kubernetes/support/server.js";
import { EtcdServer, hasEtcd } from "./etcd-server.js";
import { hasPostgres, PostgresServer } from "./postgres-server.js";

export interface SharedStore {
  readonly name: string;
  /** URL of a store of this test's own. Skips the test, with a reason, where there is none. */
  open(): Promise<string>;
}

const file: SharedStore = {
  name: "file",
  open: async () => {
    const directory = await mkdtemp(join(tmpdir(), "conclave-shared-"));
    onTestFinished(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }));
    return pathToFileURL(directory).href;
  },
};

const etcd: SharedStore = {
  name: "etcd",
  open: async () => {
    const server = await EtcdServer.start();
    onTestFinished(() => server.stop());
    return `etcd://${server.endpoints.join(",")}`;
  },
};

const postgres: SharedStore = {
  name: "postgres",
  open: async () => {
    const server = await PostgresServer.start();
    onTestFinished(() => server.stop());
    return server.url();
  },
};

const kubernetes: SharedStore = {
  name: "kubernetes",
  open: async () => {
    const server = await startServer();
    onTestFinished(() => server.stop(), 60_000);
    const url = new URL("kubernetes:///default");
    url.searchParams.set("kubeconfig", server.elector);
    return url.href;
  },
};

// A minute for each test and more, so not in the ordinary run.
const withKubernetes = process.env["CONCLAVE_LONG"] === "1";
if (withKubernetes && source === undefined) console.warn(`\n${NOT_RUN}\n`);

/** A store that is not installed here is reported by scripts/stores-report.mjs. */
export const backends: readonly SharedStore[] = [
  file,
  ...(hasEtcd() ? [etcd] : []),
  ...(hasPostgres() ? [postgres] : []),
  ...(withKubernetes && (source !== undefined || required) ? [kubernetes] : []),
];
