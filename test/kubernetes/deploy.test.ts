/** The scripts and the image of deploy/, without Minikube and without Docker. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { parse } from "yaml";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const scripts = ["setup.sh", "cleanup.sh"].map((name) => join(ROOT, "deploy/minikube", name));
const directories: string[] = [];

afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});

function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "conclave-deploy-"));
  directories.push(directory);
  return directory;
}

/** Where a command is, by this process's PATH. */
function which(command: string): string | undefined {
  return (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((folder) => join(folder, command))
    .find((path) => existsSync(path));
}

/** A PATH on which minikube, kubectl and docker only write down how they were called. */
function standIns(tools: readonly string[]): { readonly path: string; readonly calls: () => string[] } {
  const bin = scratch();
  const log = join(bin, "calls.log");
  writeFileSync(log, "");
  for (const tool of ["bash", "dirname", "cat", "sh", "env"])
    symlinkSync(which(tool) ?? `/bin/${tool}`, join(bin, tool));
  for (const tool of tools) {
    const script = [
      "#!/bin/bash",
      `printf '%s%s\\n' '${tool} ' "$*\${DOCKER_HOST:+ [DOCKER_HOST=$DOCKER_HOST]}" >> '${log}'`,
      `case "${tool} $*" in`,
      `  *docker-env*) echo 'export DOCKER_HOST=tcp://inside-minikube' ;;`,
      `  "minikube "*status*) exit "\${MINIKUBE_STATUS:-0}" ;;`,
      `  *"get deployment"*) exit "\${DEPLOYMENT_EXISTS:-1}" ;;`,
      "esac",
    ];
    writeFileSync(join(bin, tool), `${script.join("\n")}\n`);
    chmodSync(join(bin, tool), 0o755);
  }
  return {
    path: bin,
    calls: () =>
      readFileSync(log, "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => line.replaceAll(ROOT.replace(/\/$/, ""), "ROOT")),
  };
}

function run(
  script: string,
  path: string,
  args: readonly string[] = [],
  env: Record<string, string> = {},
): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync("bash", [script, ...args], {
    encoding: "utf8",
    env: { PATH: path, ...env },
    cwd: tmpdir(),
  });
  return { status, output: stdout + stderr };
}

describe("deploy/minikube scripts", () => {
  it.skipIf(which("shellcheck") === undefined)("pass shellcheck", () => {
    const { status, stdout } = spawnSync("shellcheck", scripts, { encoding: "utf8" });
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });

  it("setup builds inside Minikube, deploys etcd before the candidates, waits for both, and says what to watch", () => {
    const { path, calls } = standIns(["minikube", "kubectl", "docker"]);
    const { status, output } = run(scripts[0] ?? "", path);
    expect(status, output).toBe(0);
    expect(calls()).toEqual([
      "minikube --profile minikube status",
      "minikube --profile minikube docker-env --shell bash",
      "docker build --tag leader-election:latest --file ROOT/deploy/Dockerfile ROOT [DOCKER_HOST=tcp://inside-minikube]",
      "kubectl --context minikube apply -f ROOT/deploy/minikube/etcd.yaml",
      "kubectl --context minikube rollout status statefulset/etcd --timeout=240s",
      "kubectl --context minikube get deployment/leader-election-app",
      "kubectl --context minikube apply -f ROOT/deploy/minikube/app.yaml",
      "kubectl --context minikube rollout status deployment/leader-election-app --timeout=240s",
    ]);
    expect(output).toContain("logs -f -l app=leader-election");
    expect(output).toContain("delete pod");
  });

  it("setup starts Minikube if it does not run, and restarts candidates that are there already", () => {
    const { path, calls } = standIns(["minikube", "kubectl", "docker"]);
    const { status } = run(scripts[0] ?? "", path, [], {
      MINIKUBE_STATUS: "85",
      DEPLOYMENT_EXISTS: "0",
      MINIKUBE_PROFILE: "demo",
    });
    expect(status).toBe(0);
    expect(calls()).toContain("minikube --profile demo start");
    expect(calls()).toContain("kubectl --context demo rollout restart deployment/leader-election-app");
  });

  it.each(["minikube", "kubectl", "docker"])("setup without %s says so and does nothing", (absent) => {
    const { path, calls } = standIns(["minikube", "kubectl", "docker"].filter((tool) => tool !== absent));
    const { status, output } = run(scripts[0] ?? "", path);
    expect(status).toBe(1);
    expect(output).toContain(`not installed: ${absent}.`);
    expect(calls()).toEqual([""]);
  });

  it("cleanup takes the candidates away before etcd, then the data and the image", () => {
    const { path, calls } = standIns(["minikube", "kubectl", "docker"]);
    expect(run(scripts[1] ?? "", path).status).toBe(0);
    expect(calls()).toEqual([
      "kubectl --context minikube delete -f ROOT/deploy/minikube/app.yaml --ignore-not-found --wait --timeout=60s",
      "kubectl --context minikube delete -f ROOT/deploy/minikube/etcd.yaml --ignore-not-found --wait --timeout=60s",
      "kubectl --context minikube delete persistentvolumeclaim/data-etcd-0 --ignore-not-found",
      "minikube --profile minikube image rm leader-election:latest",
    ]);
    expect(run(scripts[1] ?? "", path, ["--stop", "--keep"]).status).toBe(0);
    expect(calls().at(-1)).toBe("minikube --profile minikube stop");
    expect(run(scripts[1] ?? "", path, ["--everything"]).status).toBe(2);
  });
});

describe("the demo's names", () => {
  it("are those of the page: etcd-0, service etcd, Deployment leader-election-app of 3, never pulled", () => {
    const etcd = readFileSync(join(ROOT, "deploy/minikube/etcd.yaml"), "utf8")
      .split("\n---\n")
      .map((text) => parse(text));
    expect(etcd.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      "Service etcd",
      "StatefulSet etcd",
    ]);
    const app = parse(readFileSync(join(ROOT, "deploy/minikube/app.yaml"), "utf8"));
    expect(app).toMatchObject({
      kind: "Deployment",
      metadata: { name: "leader-election-app" },
      spec: { replicas: 3 },
    });
    const [container] = app.spec.template.spec.containers;
    expect(app.spec.template.metadata.labels).toEqual({ app: "leader-election" });
    expect(container).toMatchObject({ image: "leader-election:latest", imagePullPolicy: "Never" });
    expect(container.args).toEqual(["run", "leader-election", "--work-every", "3s", "--max-term", "30s"]);
    expect(container.env.map(({ name }: { name: string }) => name)).toEqual([
      "POD_NAME",
      "ETCD_ENDPOINT",
      "CONCLAVE_BACKEND",
    ]);
  });

  it("compose has an etcd and three candidates that cannot write", () => {
    const { services } = parse(readFileSync(join(ROOT, "deploy/compose.yaml"), "utf8"));
    expect(Object.keys(services)).toEqual(["etcd", "candidate"]);
    expect(services.candidate).toMatchObject({
      read_only: true,
      cap_drop: ["ALL"],
      deploy: { replicas: 3 },
      build: { context: "..", dockerfile: "deploy/Dockerfile" },
    });
    expect(services.etcd.image).toMatch(/:v\d+\.\d+\.\d+$/);
  });
});

interface Step {
  readonly instruction: string;
  readonly rest: string;
}

function dockerfile(): Step[] {
  return readFileSync(join(ROOT, "deploy/Dockerfile"), "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("#"))
    .map((line) => ({ instruction: line.split(" ")[0] ?? "", rest: line.slice(line.indexOf(" ") + 1) }));
}

describe("deploy/Dockerfile", () => {
  const steps = dockerfile();

  it("names exact versions, ends as a user that is not root, and starts without a shell", () => {
    const bases = steps.filter(({ instruction }) => instruction === "FROM").map(({ rest }) => rest);
    expect(bases).toEqual(["${BASE} AS build", "${BASE}"]);
    const [base] = steps.filter(({ instruction }) => instruction === "ARG");
    expect(base?.rest).toMatch(/^BASE=node:\d+\.\d+\.\d+-bookworm-slim$/);
    expect(steps.findLast(({ instruction }) => instruction === "USER")?.rest).toBe("1000:1000");
    expect(JSON.parse(steps.findLast(({ instruction }) => instruction === "ENTRYPOINT")?.rest ?? "")).toEqual(
      ["/usr/bin/tini", "--", "node", "/app/dist/cli/main.js"],
    );
  });

  it("gets everything it copies past .dockerignore, and nothing else gets in", () => {
    const kept = readFileSync(join(ROOT, ".dockerignore"), "utf8")
      .split("\n")
      .filter((line) => line.startsWith("!"))
      .map((line) => line.slice(1));
    const copied = steps
      .filter(({ instruction, rest }) => instruction === "COPY" && !rest.startsWith("--from"))
      .flatMap(({ rest }) => rest.split(" ").slice(0, -1));
    expect(kept.toSorted()).toEqual(copied.toSorted());
  });

  // Follows the file in empty directories: what it forgets to copy is not there.
  it("its steps make a program that runs", { timeout: 180_000 }, () => {
    const stages: Record<string, string> = {};
    let directory = "";
    let workdir = "/";
    const place = (path: string): string =>
      join(directory, path.startsWith("/") ? path : join(workdir, path));
    for (const { instruction, rest } of steps) {
      if (instruction === "FROM") {
        directory = scratch();
        workdir = "/";
        stages[/ AS (\w+)$/.exec(rest)?.[1] ?? "final"] = directory;
      } else if (instruction === "WORKDIR") {
        workdir = rest;
        mkdirSync(place("."), { recursive: true });
      } else if (instruction === "COPY") {
        copy(rest, stages, place);
      } else if (instruction === "RUN" && rest.startsWith("apt-get ")) {
        // The image's own packages: not for the machine that runs this test.
        expect(rest).toBe(
          "apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/*",
        );
      } else if (instruction === "RUN") {
        const env = { ...process.env, npm_config_prefer_offline: "true" };
        const { status, stderr, stdout } = spawnSync("sh", ["-c", rest], {
          cwd: place("."),
          encoding: "utf8",
          env,
        });
        expect(status, `RUN ${rest}\n${stdout}${stderr}`).toBe(0);
      }
    }
    const final = stages["final"] ?? "";
    expect(existsSync(join(final, "app/node_modules/typescript")), "no compiler in the image").toBe(false);
    const load = spawnSync(
      process.execPath,
      ["--input-type=module", "-e", `await import(${JSON.stringify(join(final, "app/dist/index.js"))})`],
      { encoding: "utf8", cwd: tmpdir() },
    );
    expect(load.stderr).toBe("");
    const cli = join(final, "app/dist/cli/main.js");
    if (!existsSync(join(ROOT, "src/cli/main.ts"))) return;
    const help = spawnSync(process.execPath, [cli, "--help"], { encoding: "utf8", cwd: tmpdir() });
    expect(help.status, help.stderr).toBe(0);
    expect(help.stdout).toContain("conclave run");
  });
});

function copy(rest: string, stages: Record<string, string>, place: (path: string) => string): void {
  const words = rest.split(" ");
  const from = words[0]?.startsWith("--from=") ? stages[words.shift()?.slice(7) ?? ""] : undefined;
  const target = words.pop() ?? "";
  for (const word of words) {
    const source = from === undefined ? join(ROOT, word) : join(from, word);
    const name = word.split("/").at(-1) ?? "";
    cpSync(
      source,
      target.endsWith("/") && words.length >= 1 && target === "./" ? place(name) : place(target),
      { recursive: true, verbatimSymlinks: true },
    );
  }
}
