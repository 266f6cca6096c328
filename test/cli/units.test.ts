import { describe, expect, it } from "vitest";
import { formatDuration, parseDuration } from "../../src/terminal/duration.js";
import { exitCodeOf, failureLine, Stopped, UsageError } from "../../src/terminal/failure.js";
import { preciseNow } from "../../src/terminal/lines.js";
import { clockTime, render } from "../../src/terminal/output.js";
import { redact, rememberSecrets } from "../../src/terminal/secrets.js";
import { showUrl } from "../../src/kit/urls.js";
import { backendUrl } from "../../src/cli/store.js";
import { examples } from "../../src/backends/registry.js";
import { ConclaveError, invalid } from "../../src/kit/errors.js";
import { printable } from "../../src/kit/printable.js";

describe("durations", () => {
  it.each([
    ["500ms", 500],
    ["10s", 10_000],
    ["1.5s", 1_500],
    ["1m", 60_000],
    ["24h", 86_400_000],
    ["1ms", 1],
  ])("%s is %d ms", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    ["0", /no unit/],
    ["10", /no unit/],
    ["2147483648", /no unit/],
    ["0s", /at least 1ms/],
    ["0.5ms", /at least 1ms/],
    ["2147483648ms", /at most 24h/],
    ["25h", /at most 24h/],
    ["-1", /not a number with a unit/],
    ["-1s", /not a number with a unit/],
    ["NaN", /not a number with a unit/],
    ["Infinity", /not a number with a unit/],
    ["1e12", /not a number with a unit/],
    ["1e3s", /not a number with a unit/],
    ["0x10s", /not a number with a unit/],
    [" 10s", /not a number with a unit/],
    ["10s\n", /not a number with a unit/],
    ["10 s", /not a number with a unit/],
    ["٣s", /not a number with a unit/],
    ["", /not a number with a unit/],
    ["s", /not a number with a unit/],
    ["10d", /unit must be ms, s, m or h/],
    ["10S", /not a number with a unit/],
    ["1".repeat(400), /not a number with a unit/],
  ])("%j is refused with what to write instead", (text, why) => {
    expect(() => parseDuration(text)).toThrow(why);
    expect(() => parseDuration(text)).toThrow(/write for example 500ms, 10s or 1m/);
  });

  it("are written the short way", () => {
    expect([250, 1_000, 2_550, 60_000].map(formatDuration)).toEqual(["250ms", "1s", "2.55s", "60s"]);
  });
});

describe("secrets", () => {
  it("examples that hold none are shown whole", () => {
    for (const text of [
      ...[examples(), `use one of ${examples()}, or register your own`],
      "write raft://n1@host:port,n2@host:port,n3@host:port?self=n1&dir=…&key-file=…",
      "write redis://user:password@host, or set REDIS_PASSWORD",
    ])
      expect(redact(text)).toBe(text);
  });

  it.each([
    ["raft://n1:hunter2@h:1,n2@h:2", "hunter2"],
    ["etcd://n1@h:1,hunter2@h:2", "hunter2"],
    ["redis://user:hunter2@h", "hunter2"],
    ["raft://n1@h:1?key=hunter2…", "hunter2"],
  ])("but %s is not an example", (text, secret) => {
    expect(redact(text)).not.toContain(secret);
  });

  it("are struck out of any message, in every form they can take", () => {
    rememberSecrets("postgres://app:p%40ssw0rd@db.example:5432/x?sslkey=abcdef123&mode=fast");
    rememberSecrets("nats://s3cr3t-token@nats.example");
    const said = redact(
      "cannot log in as app with p%40ssw0rd (p@ssw0rd) and abcdef123 at postgres://app:p%40ssw0rd@db.example, nor by s3cr3t-token, mode fast",
    );
    expect(said).toBe(
      "cannot log in as app with *** (***) and *** at postgres://***@db.example, nor by ***, mode fast",
    );
  });

  it("are struck out of a URL that nobody announced", () => {
    expect(redact("unknown option '--bakend=redis://:x@h:1/0'")).toBe(
      "unknown option '--bakend=redis://***@h:1/0'",
    );
  });

  it("are struck out of a URL that cannot be read as one", () => {
    for (const odd of [
      "etcd://root:pa/ss@host:2379/x",
      "etcd://root:p?s=s@host:2379/x",
      "etcd://:p#s@host:2379/x",
    ])
      expect(redact(`bad: ${odd}`), odd).toBe("bad: etcd://***@host:2379/x");
    const harmless = "etcd://host:2379,other:2379/a@b, mailto bob@host, http://host/x@y";
    expect(redact(harmless)).toBe(harmless);
  });

  it("of a few characters are left alone outside of URLs: they occur in every message", () => {
    rememberSecrets("redis://:the@host");
    expect(redact("the lease of the leader")).toBe("the lease of the leader");
  });

  it("do not include the path of a key file", () => {
    rememberSecrets("etcds://host?key=/etc/ssl/client.pem&cert=/etc/ssl/client.crt");
    expect(redact("cannot read /etc/ssl/client.pem")).toBe("cannot read /etc/ssl/client.pem");
  });

  it("do not include the names of peers", () => {
    const list = "n1@127.0.0.1:7401,n2@127.0.0.1:7402,n3@127.0.0.1:7403";
    rememberSecrets(`raft://${list}?self=n1`);
    rememberSecrets(`bully://${list}`);
    expect(redact(`this process has ${list}`)).toBe(`this process has ${list}`);
  });

  it("are not part of a URL that is shown", () => {
    expect(showUrl("etcd://root:p?w@host:2379/prefix?token=x")).toBe("etcd://host:2379/prefix");
    expect(showUrl("etcd://root:pw@host:2379,other:2379/prefix?token=x")).toBe(
      "etcd://host:2379,other:2379/prefix",
    );
    expect(showUrl("memory:")).toBe("memory:");
  });
});

describe("where elections live", () => {
  it("is one URL, whichever flags name it", () => {
    expect(backendUrl({})).toBeUndefined();
    expect(backendUrl({ backend: "memory:" })).toBe("memory:");
    expect(backendUrl({ lockDir: "/a b" })).toBe("file:///a%20b");
    expect(backendUrl({ leaseLockName: "x" })).toBe("kubernetes:///");
    expect(backendUrl({ leaseLockName: "x", backend: "kubernetes:///ns" })).toBe("kubernetes:///ns");
    expect(backendUrl({ leaseLockNamespace: "ns" })).toBe("kubernetes:///ns");
    expect(backendUrl({ leaseLockNamespace: "../ns", kubeconfig: "/k c" })).toBe(
      "kubernetes:///..%2Fns?kubeconfig=%2Fk+c",
    );
    expect(() => backendUrl({ backend: "memory:", lockDir: "/x" })).toThrow(/give one/);
    expect(() => backendUrl({ kubeconfig: "/k", lockDir: "/x" })).toThrow(/give one/);
  });
});

describe("exit codes", () => {
  it("tell a mistake from a no from a don't-know", () => {
    expect(exitCodeOf(new UsageError("x"))).toBe(2);
    expect(exitCodeOf(invalid("x"))).toBe(2);
    expect(exitCodeOf(new ConclaveError("unsupported", "x"))).toBe(2);
    expect(exitCodeOf(new ConclaveError("unavailable", "x"))).toBe(3);
    expect(exitCodeOf(new ConclaveError("timeout", "x"))).toBe(3);
    expect(exitCodeOf(new ConclaveError("forbidden", "x"))).toBe(3);
    expect(exitCodeOf(new ConclaveError("conflict", "x"))).toBe(3);
    expect(exitCodeOf(new ConclaveError("token-regression", "x"))).toBe(3);
    expect(exitCodeOf(new ConclaveError("not-leader", "x"))).toBe(1);
  });

  it("give what nobody foresaw a code of its own: it is no answer to who leads", () => {
    for (const error of [new TypeError("x"), new ConclaveError("state", "x"), "thrown", undefined])
      expect(exitCodeOf(error)).toBe(4);
    expect(exitCodeOf(new Stopped("SIGTERM", 15))).toBe(143);
  });

  it("come with one line in the words of the command line", () => {
    expect(failureLine(invalid("ttlMs is 5;\n  raise ttlMs"))).toBe("--ttl is 5; raise --ttl");
  });
});

describe("lines", () => {
  it("bear the time finer than a millisecond, near the wall clock", () => {
    const times = Array.from({ length: 50 }, () => preciseNow());
    expect(Math.abs(times[0]! - Date.now())).toBeLessThan(1_000);
    expect(times.some((at) => !Number.isInteger(at))).toBe(true);
    expect([...times].sort((a, b) => a - b)).toEqual(times);
  });

  it("cannot steer a terminal, whichever part of them came from elsewhere", () => {
    const colour = { colour: "red", text: "c\u001bd" } as const;
    expect(render(["a\u202eb ", colour], false)).toBe("a\\u202eb c\\u001bd");
    expect(render(["a\u202eb ", colour], true)).toBe("a\\u202eb \u001b[31mc\\u001bd\u001b[0m");
    // Marks of direction, zero width, tags, separators; not what people write.
    for (const char of "\u061c\u200b\u200e\u200f\u2028\u2066\u2069\ufeff\u00ad\u{e0041}\ud800")
      expect(printable(char), JSON.stringify(char)).toMatch(/^(\\u[0-9a-f]{4})+$/);
    expect(printable("héllo 世界 👑 נשיא e\u0301")).toBe("héllo 世界 👑 נשיא e\u0301");
    expect(JSON.parse(printable(JSON.stringify("\u{e0041}\u202e")))).toBe("\u{e0041}\u202e");
    expect(printable("a\u001b[2Jb\u009bc\u202ed")).toBe("a\\u001b[2Jb\\u009bc\\u202ed");
    expect(JSON.parse(printable(JSON.stringify({ value: "\u007f\u0000" })))).toEqual({
      value: "\u007f\u0000",
    });
  });

  it("show local time", () => {
    const noon = new Date(2024, 0, 2, 12, 3, 4, 5).getTime();
    expect(clockTime(noon)).toBe("12:03:04.005");
    expect(clockTime(noon, false)).toBe("12:03:04");
  });
});
