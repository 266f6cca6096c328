import { execFileSync } from "node:child_process";
import { chmod, chown, mkdir, readdir, stat, symlink, writeFile } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { defaultDirectory, openDirectory } from "../../src/backends/file/directory.js";
import { fileBackend } from "../../src/backends/file/index.js";
import { open, tempDirectory } from "./support.js";

const statfs = vi.hoisted(() => ({ type: undefined as number | undefined }));
vi.mock(import("node:fs/promises"), async (original) => {
  const real = await original();
  const faked = (async (path: string) => {
    const stats = await real.statfs(path);
    return statfs.type === undefined ? stats : Object.assign(stats, { type: statfs.type });
  }) as typeof real.statfs;
  return { ...real, statfs: faked };
});

const isRoot = process.geteuid?.() === 0;
const uid = process.geteuid?.();

afterEach(() => {
  statfs.type = undefined;
  vi.unstubAllEnvs();
});

describe("the default directory", () => {
  it("depends on the user alone, not on the environment", () => {
    const before = defaultDirectory();
    vi.stubEnv("HOME", "/elsewhere");
    vi.stubEnv("XDG_STATE_HOME", "/elsewhere");
    vi.stubEnv("XDG_RUNTIME_DIR", "/elsewhere");
    expect(homedir()).toBe("/elsewhere");
    expect(defaultDirectory()).toBe(before);
    expect(before).toBe(join(userInfo().homedir, ".local", "state", "conclave"));
  });
});

describe("a directory", () => {
  it("is made private, with its parents", async () => {
    const directory = join(await tempDirectory(), "a", "b");
    expect(await openDirectory({ directory })).toBe(directory);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    expect((await stat(join(directory, ".."))).mode & 0o777).toBe(0o700);
  });

  it("of our own is taken as it is", async () => {
    const directory = await tempDirectory();
    expect(await openDirectory({ directory })).toBe(directory);
    await chmod(directory, 0o755);
    expect(await openDirectory({ directory })).toBe(directory);
  });

  it("that others write to and that keeps them from each other's files gets a private one inside", async () => {
    const shared = await tempDirectory();
    await chmod(shared, 0o1777);
    const inside = join(shared, `conclave-${uid}`);
    expect(await openDirectory({ directory: shared })).toBe(inside);
    expect(await openDirectory({ directory: shared })).toBe(inside);
    expect((await stat(inside)).mode & 0o777).toBe(0o700);
    await fileBackend({ directory: shared }).records.write("a", null, "x", open);
    expect(await readdir(shared)).toEqual([`conclave-${uid}`]);
  });

  it.each([0o777, 0o770, 0o707, 0o775])("of mode %o is refused", async (mode) => {
    const directory = await tempDirectory();
    await chmod(directory, mode);
    await expect(openDirectory({ directory })).rejects.toMatchObject({
      code: "unsupported",
      retriable: false,
      message: expect.stringMatching(/written by others.*chmod 700/),
    });
  });

  it("that is a symbolic link is refused", async () => {
    const parent = await tempDirectory();
    await mkdir(join(parent, "real"), { mode: 0o700 });
    await symlink("real", join(parent, "link"));
    await expect(openDirectory({ directory: join(parent, "link") })).rejects.toThrow(/symbolic link/);
  });

  it("that is a file is refused", async () => {
    const parent = await tempDirectory();
    await writeFile(join(parent, "file"), "");
    await expect(openDirectory({ directory: join(parent, "file") })).rejects.toThrow(/not a directory/);
    await expect(openDirectory({ directory: join(parent, "file", "x") })).rejects.toMatchObject({
      code: "conflict",
    });
  });

  it.runIf(isRoot)("of another user is refused", async () => {
    const directory = await tempDirectory();
    await chown(directory, 65534, 65534);
    await expect(openDirectory({ directory })).rejects.toThrow(/belongs to user 65534/);
  });

  it("planted in a shared one is refused: a link, a file, a loose or a foreign directory", async () => {
    const plant = async (how: (inside: string) => Promise<void>): Promise<string> => {
      const shared = await tempDirectory();
      await chmod(shared, 0o1777);
      await how(join(shared, `conclave-${uid}`));
      return shared;
    };
    const link = await plant((inside) => symlink("/", inside));
    await expect(openDirectory({ directory: link })).rejects.toThrow(/someone put it there/);
    const file = await plant((inside) => writeFile(inside, ""));
    await expect(openDirectory({ directory: file })).rejects.toThrow(/someone put it there/);
    const loose = await plant(async (inside) => {
      await mkdir(inside);
      await chmod(inside, 0o777);
    });
    await expect(openDirectory({ directory: loose })).rejects.toThrow(/written by others/);
    if (!isRoot) return;
    const foreign = await plant(async (inside) => {
      await mkdir(inside, { mode: 0o700 });
      await chown(inside, 65534, 65534);
    });
    await expect(openDirectory({ directory: foreign })).rejects.toThrow(/who created it/);
  });

  it.each([
    [0x6969, "NFS"],
    [0xff534d42, "CIFS"],
    [0xff534d42 | 0, "CIFS"], // as a signed number
    [0xfe534d42, "SMB2"],
    [0x65735546, "FUSE"],
    [0x01021997, "9P"],
  ])("on a network file system (%d, %s) is refused, and not made", async (type, kind) => {
    const parent = await tempDirectory();
    const directory = join(parent, "new");
    statfs.type = type;
    await expect(openDirectory({ directory })).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringContaining(kind),
    });
    expect(await readdir(parent)).toEqual([]);
    expect(await openDirectory({ directory, allowNetworkFs: true })).toBe(directory);
  });

  it("that was refused and then mended is used", async () => {
    const directory = await tempDirectory();
    await chmod(directory, 0o777);
    const backend = fileBackend({ directory });
    await expect(backend.records.read("a", open)).rejects.toMatchObject({ code: "unsupported" });
    await chmod(directory, 0o700);
    expect(await backend.records.read("a", open)).toBeNull();
  });

  it("is used with private files whatever the umask", async () => {
    const directory = join(await tempDirectory(), "root");
    const script = `process.umask(0); const { fileBackend } = await import(${JSON.stringify(new URL("../../.build/src/backends/file/index.js", import.meta.url).href)});
      const b = fileBackend({ directory: ${JSON.stringify(directory)} });
      await b.records.write("a", null, "x", { signal: new AbortController().signal });`;
    execFileSync(process.execPath, ["--input-type=module", "-e", script]);
    for (const path of ["", "records", "records/n-a", "staging"])
      expect((await stat(join(directory, path))).mode & 0o777).toBe(0o700);
    expect((await stat(join(directory, "records/n-a/first"))).mode & 0o777).toBe(0o600);
  });
});
