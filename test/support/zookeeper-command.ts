/** Debian's ZooKeeper: jars, and a Java to run them. */
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

const JARS = "/usr/share/java";
const SERVER = [
  ...["zookeeper", "zookeeper-jute", "guava", "failureaccess", "slf4j-api", "slf4j-simple"],
  ...["jackson-databind", "jackson-core", "jackson-annotations", "metrics-core", "commons-cli", "commons-io"],
  "snappy-java",
];
const CURATOR = ["curator-client", "curator-framework", "curator-recipes"];

function jar(name: string): string {
  return join(JARS, `${name}.jar`);
}

function program(name: string): string | undefined {
  const directories = (process.env["PATH"] ?? "").split(delimiter);
  return directories.map((directory) => join(directory, name)).find((path) => existsSync(path));
}

export function hasZooKeeper(): boolean {
  return program("java") !== undefined && existsSync(jar("zookeeper")) && existsSync(jar("zookeeper-jute"));
}

/** Curator's recipes and a compiler for the program that uses them. */
export function hasCurator(): boolean {
  return hasZooKeeper() && program("javac") !== undefined && CURATOR.every((name) => existsSync(jar(name)));
}

/** Class path of the server, and of programs that use Curator. */
export function classPath(...more: string[]): string {
  const netty = readdirSync(JARS).filter((name) => /^netty-[a-z-]+\.jar$/.test(name));
  const jars = [...SERVER, ...CURATOR].map(jar).filter((path) => existsSync(path));
  return [...more, ...jars, ...netty.map((name) => join(JARS, name))].join(":");
}
