/** kube-apiserver and etcd from one folder, as envtest lays them out, started on loopback. */
import type { ChildProcess } from "node:child_process";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { apiCall } from "./api.js";
import type { Server } from "./server.js";

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

function certificates(pki: string): void {
  const openssl = (...args: string[]): void =>
    void execFileSync("openssl", args, { cwd: pki, stdio: "pipe" });
  const key = (name: string): void =>
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", `${name}.key`);
  const leaf = (name: string, subject: string, extensions: string): void => {
    key(name);
    writeFileSync(join(pki, `${name}.ext`), extensions);
    openssl("req", "-new", "-key", `${name}.key`, "-subj", subject, "-out", `${name}.csr`);
    openssl(
      "x509",
      "-req",
      "-in",
      `${name}.csr`,
      "-CA",
      "ca.crt",
      "-CAkey",
      "ca.key",
      "-CAcreateserial",
      "-days",
      "30",
      "-extfile",
      `${name}.ext`,
      "-out",
      `${name}.crt`,
    );
  };
  key("ca");
  openssl(
    "req",
    "-x509",
    "-new",
    "-key",
    "ca.key",
    "-days",
    "30",
    "-subj",
    "/CN=test-ca",
    "-out",
    "ca.crt",
    "-addext",
    "basicConstraints=critical,CA:TRUE",
    "-addext",
    "keyUsage=critical,keyCertSign,cRLSign",
  );
  leaf(
    "apiserver",
    "/CN=kube-apiserver",
    "subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth\n",
  );
  leaf("admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth\n");
  key("sa");
  openssl("ec", "-in", "sa.key", "-pubout", "-out", "sa.pub");
}

function writeKubeconfig(path: string, server: string, ca: string, user: Record<string, string>): string {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    clusters: [
      {
        name: "test",
        cluster: { server, "certificate-authority-data": readFileSync(ca).toString("base64") },
      },
    ],
    contexts: [{ name: "test", context: { cluster: "test", user: "u", namespace: "default" } }],
    users: [{ name: "u", user }],
  };
  writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
  return path;
}

async function until(what: string, check: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 300; i++) {
    if (await check().catch(() => false)) return;
    await pause(100);
  }
  throw new Error(`${what} did not come up within 30 s`);
}

export async function startAssets(folder: string): Promise<Server> {
  for (const name of ["kube-apiserver", "etcd"]) {
    if (!existsSync(join(folder, name)))
      throw new Error(`KUBEBUILDER_ASSETS is ${folder}, where there is no ${name}`);
  }
  const directory = mkdtempSync(join(tmpdir(), "conclave-k8s-"));
  const pki = join(directory, "pki");
  mkdirSync(pki);
  certificates(pki);
  const [client, peer, api] = [await freePort(), await freePort(), await freePort()];
  const children: ChildProcess[] = [];
  const start = (name: string, args: string[]): ChildProcess => {
    const child = spawn(join(folder, name), args, { cwd: directory, stdio: "ignore" });
    children.push(child);
    return child;
  };
  const stop = (): void => {
    for (const child of children.toReversed()) child.kill("SIGKILL");
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const tokens = { admin: randomBytes(16).toString("hex"), elector: randomBytes(16).toString("hex") };
    writeFileSync(
      join(pki, "tokens.csv"),
      `${tokens.admin},admin,admin-uid,"system:masters"\n${tokens.elector},elector,elector-uid\n`,
    );
    const url = `http://127.0.0.1:${client}`;
    const etcd = start("etcd", [
      "--data-dir",
      "etcd-data",
      "--listen-client-urls",
      url,
      "--advertise-client-urls",
      url,
      "--listen-peer-urls",
      `http://127.0.0.1:${peer}`,
    ]);
    await until("etcd", async () => (await fetch(`${url}/health`)).ok);
    const apiserver = start("kube-apiserver", [
      `--etcd-servers=${url}`,
      "--bind-address=127.0.0.1",
      "--advertise-address=127.0.0.1",
      `--secure-port=${api}`,
      "--endpoint-reconciler-type=none",
      "--service-cluster-ip-range=10.0.0.0/24",
      `--cert-dir=${join(directory, "certs")}`,
      `--tls-cert-file=${pki}/apiserver.crt`,
      `--tls-private-key-file=${pki}/apiserver.key`,
      `--client-ca-file=${pki}/ca.crt`,
      `--token-auth-file=${pki}/tokens.csv`,
      "--authorization-mode=RBAC",
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${pki}/sa.pub`,
      `--service-account-signing-key-file=${pki}/sa.key`,
      "--disable-admission-plugins=ServiceAccount",
    ]);
    const server = `https://127.0.0.1:${api}`;
    const ca = join(pki, "ca.crt");
    const admin = writeKubeconfig(join(directory, "admin.kubeconfig"), server, ca, { token: tokens.admin });
    const elector = writeKubeconfig(join(directory, "elector.kubeconfig"), server, ca, {
      token: tokens.elector,
    });
    const cert = writeKubeconfig(join(directory, "cert.kubeconfig"), server, ca, {
      "client-certificate": "pki/admin.crt",
      "client-key": "pki/admin.key",
    });
    await until(
      "kube-apiserver",
      async () => (await apiCall(admin, "GET", "/api/v1/namespaces/default")).status === 200,
    );
    await grantElector(admin);
    const candidate = process.env["CLIENT_GO_CANDIDATE"];
    return {
      admin,
      elector,
      cert,
      candidate,
      pids: { apiserver: apiserver.pid ?? 0, etcd: etcd.pid ?? 0 },
      stop,
    };
  } catch (error) {
    stop();
    throw error;
  }
}

async function grantElector(admin: string): Promise<void> {
  const base = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
  const apiGroup = "rbac.authorization.k8s.io";
  await apiCall(admin, "POST", `${base}/roles`, {
    metadata: { name: "elector" },
    rules: [
      {
        apiGroups: ["coordination.k8s.io"],
        resources: ["leases"],
        verbs: ["get", "list", "watch", "create", "update"],
      },
    ],
  });
  await apiCall(admin, "POST", `${base}/rolebindings`, {
    metadata: { name: "elector" },
    roleRef: { apiGroup, kind: "Role", name: "elector" },
    subjects: [{ apiGroup, kind: "User", name: "elector" }],
  });
}
