/** Which parameters of each backend's URL name files. */
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { backends } from "../../src/backends/registry.js";

it.each([
  ["raft://n1@h:1,n2@h:2,n3@h:3?self=n1&dir=a/b&key-file=../k", ["a/b", "../k"]],
  ["bully://n1@h:1,n2@h:2?self=n1&key-file=k&unsafe=true&dir=d", ["k", "d"]],
  ["etcds://u:p%2Fw@h:2379,i:2379/p?ca=ca.pem&cert=c.pem&key=k.pem&layout=key", ["ca.pem", "c.pem", "k.pem"]],
  ["consuls://h:8501/p?ca=ca.pem&cert=c.pem&key=k.pem&tokenFile=t&dc=x", ["ca.pem", "c.pem", "k.pem", "t"]],
  ["zookeepers://h:1,i:2/p?ca=ca.pem&cert=c.pem&key=k.pem&acl=creator", ["ca.pem", "c.pem", "k.pem"]],
  ["rediss://h:1/0?ca=ca.pem&cert=c.pem&key=k.pem&prefix=a", ["ca.pem", "c.pem", "k.pem"]],
  ["postgres://h:1,i:2/d?sslrootcert=r&sslcert=c&sslkey=k&table=t", ["r", "c", "k"]],
  ["kubernetes:///ns?kubeconfig=a:/b/c&context=x", ["a"]],
])("%s", (url, paths) => {
  const { absolute } = backends.find(({ schemes }) => schemes.includes(url.slice(0, url.indexOf(":"))))!;
  const expected = paths.reduce(
    (text, path) => text.replace(new RegExp(`=${path}(?=$|[&:])`), `=${resolve(path)}`),
    url,
  );
  expect(expected).not.toBe(url);
  expect(absolute?.(url)).toBe(expected);
  // What is absolute already is left as it was written.
  expect(absolute?.(expected)).toBe(expected);
});
