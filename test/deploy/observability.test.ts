/** The alert rules, the dashboard and the units of deploy/, against what they talk about. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { ElectionMetrics, ScheduleMetrics } from "../../src/metrics/index.js";
import { Cli, scratch } from "../cli/process.js";
import { ROOT } from "../shape/sources.js";

const RULES = join(ROOT, "deploy/prometheus");
const long = process.env["CONCLAVE_LONG"] === "1";
const promtool = findPromtool();
if (promtool === undefined)
  console.warn(
    "\npromtool was not found: the alert rules were NOT evaluated (CONCLAVE_LONG=1 fetches it).\n",
  );

/** A long run fetches it, where that is allowed. */
function findPromtool(): string | undefined {
  const env = { ...process.env, ...(long ? {} : { CONCLAVE_INSTALL: "no" }) };
  const { status, stdout } = spawnSync(join(ROOT, "scripts/servers/promtool"), { encoding: "utf8", env });
  return status === 0 ? stdout.trim() : undefined;
}

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[];
  }[];
}

interface RuleTests {
  readonly tests: readonly {
    readonly alert_rule_test: readonly {
      readonly alertname: string;
      readonly exp_alerts: readonly unknown[];
    }[];
  }[];
}

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

describe("alert rules", () => {
  const alerts = (parse(read("deploy/prometheus/conclave.rules.yaml")) as Rules).groups.flatMap(
    ({ rules }) => rules,
  );
  const cases = (parse(read("deploy/prometheus/conclave.rules.test.yaml")) as RuleTests).tests.flatMap(
    ({ alert_rule_test: all }) => all,
  );

  it.each(alerts)("$alert is tested firing and not firing", ({ alert }) => {
    const own = cases.filter(({ alertname }) => alertname === alert);
    expect(own.some(({ exp_alerts: expected }) => expected.length > 0)).toBe(true);
    expect(own.some(({ exp_alerts: expected }) => expected.length === 0)).toBe(true);
  });

  it.skipIf(promtool === undefined)("do as their tests say, by promtool", () => {
    const { status, stdout, stderr } = spawnSync(promtool!, ["test", "rules", "conclave.rules.test.yaml"], {
      cwd: RULES,
      encoding: "utf8",
    });
    expect(status, stdout + stderr).toBe(0);
  });

  it.skipIf(promtool === undefined || !long)(
    "and a rule that is weakened is noticed, each of them",
    { timeout: 240_000 },
    () => {
      const folder = mkdtempSync(join(tmpdir(), "conclave-rules-"));
      try {
        writeFileSync(
          join(folder, "conclave.rules.test.yaml"),
          read("deploy/prometheus/conclave.rules.test.yaml"),
        );
        for (const { alert } of alerts) {
          const rules = parse(read("deploy/prometheus/conclave.rules.yaml")) as Rules;
          const weak = rules.groups.map((group) => ({
            ...group,
            rules: group.rules.map((rule) =>
              rule.alert === alert ? { ...rule, expr: "vector(0) > 1" } : rule,
            ),
          }));
          writeFileSync(join(folder, "conclave.rules.yaml"), JSON.stringify({ groups: weak }));
          const { status } = spawnSync(promtool!, ["test", "rules", "conclave.rules.test.yaml"], {
            cwd: folder,
          });
          expect(status, `${alert} never fires, and no test says so`).not.toBe(0);
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}

describe("the Grafana dashboard", () => {
  const dashboard = JSON.parse(read("deploy/grafana/conclave.json")) as {
    panels: readonly Panel[];
    templating: { list: readonly { name: string; definition?: string }[] };
  };
  const expressions = [
    ...dashboard.panels.flatMap(({ targets }) => targets ?? []).map(({ expr }) => expr),
    ...dashboard.templating.list.flatMap(({ definition }) => definition ?? []),
  ];

  it("names only metrics and labels that exist, and every metric that there is", async () => {
    const { registry } = new ElectionMetrics();
    void new ScheduleMetrics({ registry });
    const metrics = await registry.getMetricsAsJSON();
    const known = metrics.flatMap(({ name, type }) =>
      `${type}` === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    );
    const named = new Set(expressions.flatMap((expr) => expr.match(/conclave_[a-z_]+/g) ?? []));
    expect([...named].filter((name) => !known.includes(name))).toEqual([]);
    const shown = (name: string): boolean =>
      [...named].some((other) => other === name || other === `${name}_bucket`);
    expect(metrics.map(({ name }) => name).filter((name) => !shown(name))).toEqual([]);
    // `namespace`, `pod` and `instance` are added by Prometheus.
    const labels = [
      "election",
      "backend",
      "schedule",
      "reason",
      "result",
      "outcome",
      "exclusion",
      "token",
      "le",
    ];
    const grouped = expressions.flatMap((expr) =>
      [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names]) => names!.split(/, */)),
    );
    expect(grouped.filter((name) => ![...labels, "namespace"].includes(name))).toEqual([]);
  });

  it("has expressions that Prometheus can read, and variables that are there", () => {
    const variables = new Set(dashboard.templating.list.map(({ name }) => name));
    const used = expressions.flatMap((expr) => [...expr.matchAll(/\$\{?([a-z]+)/g)].map(([, name]) => name!));
    expect(used.filter((name) => !variables.has(name))).toEqual([]);
    if (promtool === undefined) return;
    const rules = dashboard.panels
      .flatMap(({ targets }) => targets ?? [])
      .map(({ expr }, i) => ({
        record: `panel:${i}`,
        expr: expr.replaceAll(/\$\{?[a-z]+\}?/g, ".*"),
      }));
    const folder = mkdtempSync(join(tmpdir(), "conclave-dashboard-"));
    try {
      writeFileSync(join(folder, "rules.yaml"), JSON.stringify({ groups: [{ name: "panels", rules }] }));
      const { status, stdout, stderr } = spawnSync(promtool, ["check", "rules", join(folder, "rules.yaml")], {
        encoding: "utf8",
      });
      expect(status, stdout + stderr).toBe(0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("systemd units", () => {
  const units = readdirSync(join(ROOT, "deploy/systemd")).filter((name) => name.endsWith(".service"));
  const able = spawnSync("systemd-analyze", ["--version"]).status === 0;

  it("are there", () => expect(units).toEqual(["mailer.service", "nightly-bill.service"]));

  it.skipIf(!able).each(units)("%s is a unit that systemd can read", (unit) => {
    const folder = mkdtempSync(join(tmpdir(), "conclave-unit-"));
    try {
      // Only the programs are not on this machine.
      const text = read(`deploy/systemd/${unit}`).replaceAll("/usr/bin/conclave", "/bin/true");
      writeFileSync(join(folder, unit), text);
      const { status, stderr } = spawnSync("systemd-analyze", ["verify", join(folder, unit)], {
        encoding: "utf8",
      });
      expect(stderr.split("\n").filter((line) => line.includes(unit))).toEqual([]);
      expect(status).toBe(0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it.each(units)("%s starts what the command line knows, and executes the last will", async (unit) => {
    const text = read(`deploy/systemd/${unit}`);
    const start = /^ExecStart=\/usr\/bin\/conclave (.*)$/m.exec(text)?.[1] ?? "";
    const words = [...start.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!);
    const program = words.indexOf("--") + 1;
    const cli = new Cli(
      [
        ...words.slice(0, program - 1),
        "--backend",
        `file://${scratch()}`,
        "--",
        process.execPath,
        "-e",
        "setInterval(() => {}, 1e6)",
      ],
      {},
    );
    await cli.errLine(/ELECTED|leads with token/);
    cli.kill("SIGTERM");
    await cli.exit;
    expect(text).toMatch(/^ExecStopPost=\/usr\/bin\/conclave last-will$/m);
  });
});
