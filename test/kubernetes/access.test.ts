/** Where credentials come from, and what is said when they cannot. No server. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent } from "node:https";
import type { RequestOptions } from "node:https";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { kubeConfigAccess } from "../../src/backends/kubernetes/kubeconfig-object.js";
import { inClusterAccess } from "../../src/backends/kubernetes/incluster.js";
import { kubernetesBackend, openKubernetes, podIdentity } from "../../src/backends/kubernetes/index.js";
import { kubeconfigAccess } from "../../src/backends/kubernetes/kubeconfig.js";

let directory = "";
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "conclave-access-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

function config(user: string, cluster = ""): string {
  return `
apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: c, cluster: {server: "https://10.1.2.3:6443", certificate-authority-data: ${base64("CA")}${cluster}}}
contexts:
- {name: one, context: {cluster: c, user: u, namespace: blue}}
- {name: two, context: {cluster: c, user: v}}
users:
- {name: u, user: ${user}}
- {name: v, user: {token: second}}
`;
}

describe("kubeconfig", () => {
  it("takes the current context: server, namespace, CA and token", async () => {
    const access = await kubeconfigAccess({ path: file("a", config("{token: secret}")) });
    expect(access.server.href).toBe("https://10.1.2.3:6443/");
    expect(access.namespace).toBe("blue");
    expect(await access.credentials()).toMatchObject({ authorization: "Bearer secret", ca: "CA" });
  });

  it("takes another context when named, and says which there are when it is not there", async () => {
    const path = file("a2", config("{token: secret}"));
    expect(await (await kubeconfigAccess({ path, context: "two" })).credentials()).toMatchObject({
      authorization: "Bearer second",
    });
    await expect(kubeconfigAccess({ path, context: "three" })).rejects.toThrow(
      /no context named "three" \(it has: one, two\)/,
    );
  });

  it("takes client certificates, inline and from files beside it", async () => {
    const inline = await kubeconfigAccess({
      path: file(
        "b",
        config(`{client-certificate-data: ${base64("CERT")}, client-key-data: ${base64("KEY")}}`),
      ),
    });
    expect(await inline.credentials()).toMatchObject({ cert: "CERT", key: "KEY" });
    mkdirSync(join(directory, "sub"), { recursive: true });
    file("sub/x.crt", "CERT2");
    file("sub/x.key", "KEY2");
    const beside = await kubeconfigAccess({
      path: file("sub/c", config("{client-certificate: x.crt, client-key: x.key}")),
    });
    expect(await beside.credentials()).toMatchObject({ cert: "CERT2", key: "KEY2" });
  });

  it("reads a token file anew each time, and basic credentials", async () => {
    const token = file("token", "one\n");
    const access = await kubeconfigAccess({ path: file("d", config(`{tokenFile: ${token}}`)) });
    expect((await access.credentials()).authorization).toBe("Bearer one");
    file("token", "two\n");
    expect((await access.credentials()).authorization).toBe("Bearer two");
    const basic = await kubeconfigAccess({ path: file("e", config("{username: u, password: p}")) });
    expect((await basic.credentials()).authorization).toBe(`Basic ${base64("u:p")}`);
  });

  it("reads the file anew when told to", async () => {
    const path = file("f", config("{token: old}"));
    const access = await kubeconfigAccess({ path });
    file("f", config("{token: new}"));
    expect((await access.credentials()).authorization).toBe("Bearer old");
    await access.refresh();
    expect((await access.credentials()).authorization).toBe("Bearer new");
  });

  it("merges a list: the first mention wins, absent files are passed over", async () => {
    const first = file("g", "current-context: two\nusers:\n- {name: v, user: {token: first-wins}}\n");
    const second = file("h", config("{token: secret}"));
    const access = await kubeconfigAccess({
      path: [join(directory, "absent"), first, second].join(delimiter),
    });
    expect((await access.credentials()).authorization).toBe("Bearer first-wins");
    expect(access.namespace).toBeUndefined();
  });

  it("reads JSON too", async () => {
    const json = {
      "current-context": "x",
      clusters: [{ name: "c", cluster: { server: "http://localhost:8001" } }],
      contexts: [{ name: "x", context: { cluster: "c" } }],
    };
    const access = await kubeconfigAccess({ path: file("i", JSON.stringify(json)) });
    expect(access.server.href).toBe("http://localhost:8001/");
    expect(await access.credentials()).toMatchObject({ authorization: undefined });
  });

  it.each([
    ["{exec: {command: aws}}", "", /exec plugin.*kubernetesBackend\(\{ kubeConfig \}\)/],
    ["{auth-provider: {name: oidc}}", "", /auth-provider.*KubeConfig of @kubernetes\/client-node/],
    ["{token: t, as: root}", "", /impersonates/],
    ["{token: t}", ", proxy-url: http://proxy", /proxy-url/],
  ])("user %s%s is refused, with the way out", async (user, cluster, message) => {
    await expect(kubeconfigAccess({ path: file("j", config(user, cluster)) })).rejects.toThrow(message);
  });

  it("never quotes a secret, not even of a file that cannot be read as YAML", async () => {
    const path = file("k", "users:\n- name: u\n  user: {token: TOPSECRET\n :::");
    const error = await kubeconfigAccess({ path }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(String(error)).toMatch(/not valid YAML/);
    expect(`${String(error)}${JSON.stringify((error as Error).cause ?? "")}`).not.toContain("TOPSECRET");
  });

  it("says where it looked when there is no file", async () => {
    await expect(kubernetesBackend({ env: { KUBECONFIG: join(directory, "nowhere") } })).rejects.toThrow(
      /nowhere.*name one with KUBECONFIG/,
    );
  });
});

describe("in a pod", () => {
  const env = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" };

  it("uses the service account, and its token as it rotates", async () => {
    file("ca.crt", "CA");
    file("namespace", "green\n");
    file("token", "t1");
    const access = await inClusterAccess({ env, directory });
    expect(access.server.host).toBe("[fd00::1]");
    expect(access.namespace).toBe("green");
    expect(await access.credentials()).toEqual({ authorization: "Bearer t1", ca: "CA" });
    file("token", "t2\n");
    expect((await access.credentials()).authorization).toBe("Bearer t2");
  });

  it("says what is missing", async () => {
    await expect(inClusterAccess({ env: {}, directory })).rejects.toThrow(/not in a Kubernetes pod/);
    await expect(inClusterAccess({ env, directory: join(directory, "none") })).rejects.toThrow(
      /automountServiceAccountToken/,
    );
  });

  it("is called by its pod's name", () => {
    expect(podIdentity({ POD_NAME: "web-1" })).toBe("web-1");
    expect(podIdentity({})).not.toBe("");
  });
});

describe("a KubeConfig object", () => {
  it("is asked before every request, by structure", async () => {
    let asked = 0;
    const access = kubeConfigAccess({
      getCurrentCluster: () => ({ name: "c", server: "https://h:1" }),
      getCurrentContext: () => "x",
      getContextObject: () => ({ namespace: "red" }),
      applyToHTTPSOptions: async (options: RequestOptions) => {
        options.headers = { Authorization: `Bearer ${++asked}`, "Impersonate-User": "x" };
        options.ca = "CA";
        options.cert = Buffer.from("CERT");
        options.agent = new Agent();
        options.rejectUnauthorized = false;
      },
    });
    expect(access.namespace).toBe("red");
    expect(await access.credentials()).toMatchObject({
      authorization: "Bearer 1",
      headers: { "impersonate-user": "x" },
      ca: "CA",
      insecure: true,
      agent: undefined,
    });
    expect((await access.credentials()).authorization).toBe("Bearer 2");
  });

  it("may bring its own way to connect", async () => {
    class ProxyAgent extends Agent {}
    const agent = new ProxyAgent();
    const access = kubeConfigAccess({
      getCurrentCluster: () => ({ server: "https://h:1" }),
      applyToHTTPSOptions: async (options) => void (options.agent = agent),
    });
    expect((await access.credentials()).agent).toBe(agent);
  });

  it("must have a cluster", () => {
    expect(() =>
      kubeConfigAccess({ getCurrentCluster: () => null, applyToHTTPSOptions: async () => {} }),
    ).toThrow(/no current cluster/);
  });
});

describe("kubernetes: URLs", () => {
  const env = (): Record<string, string> => ({ KUBECONFIG: file("url", config("{token: t}")) });

  it("name a namespace, or leave it to the configuration", async () => {
    for (const [url, namespace] of [
      ["kubernetes:///green", "green"],
      ["kubernetes:", "blue"],
      ["kubernetes:///", "blue"],
      ["kubernetes:///?context=two", "default"],
    ]) {
      await using backend = await openKubernetes(new URL(url ?? ""), { env: env() });
      expect(backend).toMatchObject({ name: "kubernetes", namespace });
    }
  });

  it.each([
    "kubernetes://host/ns",
    "kubernetes:///a/b",
    "kubernetes:///Big",
    "kubernetes:///x?ttl=3",
    "kubernetes:///x?route=maybe",
    "etcd:///x",
  ])("%s is refused", async (url) => {
    await expect(openKubernetes(new URL(url), { env: env() })).rejects.toMatchObject({ code: "invalid" });
  });
});
