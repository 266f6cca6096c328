/** Keys and certificates for servers in tests, made by openssl. */
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TlsFiles } from "../../src/backends/etcd/client/endpoint.js";

const run = promisify(execFile);

/** etcd's option for tokens signed with {@link makeSigningKey}'s key, `ttl` seconds long. */
export const signedTokens = (directory: string, ttl: number): string =>
  `jwt,pub-key=${join(directory, "jwt.pub")},priv-key=${join(directory, "jwt.key")},sign-method=RS256,ttl=${ttl}s`;

export async function makeSigningKey(directory: string): Promise<void> {
  const key = join(directory, "jwt.key");
  await run("openssl", ["genrsa", "-traditional", "-out", key, "2048"]);
  await run("openssl", ["rsa", "-in", key, "-pubout", "-out", join(directory, "jwt.pub")]);
}

/** A CA, a server certificate for the loopback, and a client certificate whose name is `conclave`. */
export async function makeCertificates(directory: string): Promise<TlsFiles> {
  const path = (name: string): string => join(directory, name);
  const openssl = (...args: string[]): Promise<unknown> => run("openssl", args);
  await openssl(
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"],
    ...["-subj", "/CN=test-ca", "-keyout", path("ca.key"), "-out", path("ca.pem")],
  );
  await writeFile(
    path("ext"),
    "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n",
  );
  for (const [name, subject] of [
    ["server", "/CN=localhost"],
    ["client", "/CN=conclave"],
  ] as const) {
    await openssl(
      ...["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", subject],
      ...["-keyout", path(`${name}.key`), "-out", path(`${name}.csr`)],
    );
    await openssl(
      ...[
        "x509",
        "-req",
        "-in",
        path(`${name}.csr`),
        "-CA",
        path("ca.pem"),
        "-CAkey",
        path("ca.key"),
        "-CAcreateserial",
      ],
      ...["-days", "2", "-extfile", path("ext"), "-out", path(`${name}.pem`)],
    );
  }
  return { ca: path("ca.pem"), cert: path("client.pem"), key: path("client.key") };
}
