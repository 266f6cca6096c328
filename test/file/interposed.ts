import type { FileSystem } from "../../src/backends/file/fs.js";
import { nodeFileSystem } from "../../src/backends/file/node-fs.js";

export type Step = keyof FileSystem;

/** The real file system, with a say before and after every call. */
export function interposed(
  before: (step: Step, path: string) => Promise<void> | void,
  after: (step: Step, path: string) => Promise<void> | void = () => {},
  fs: FileSystem = nodeFileSystem,
): FileSystem {
  const around = async <T>(step: Step, path: string, call: () => Promise<T>): Promise<T> => {
    await before(step, path);
    try {
      return await call();
    } finally {
      await after(step, path);
    }
  };
  return {
    list: (directory) => around("list", directory, () => fs.list(directory)),
    assertDirectory: (path) => around("assertDirectory", path, () => fs.assertDirectory(path)),
    mark: (path) => around("mark", path, () => fs.mark(path)),
    rewrite: (path, data, durable) => around("rewrite", path, () => fs.rewrite(path, data, durable)),
    rename: (from, to) => around("rename", from, () => fs.rename(from, to)),
    read: (path, limit) => around("read", path, () => fs.read(path, limit)),
    create: (path, data, durable) => around("create", path, () => fs.create(path, data, durable)),
    link: (from, to) => around("link", to, () => fs.link(from, to)),
    syncDirectory: (directory) => around("syncDirectory", directory, () => fs.syncDirectory(directory)),
    remove: (path) => around("remove", path, () => fs.remove(path)),
    makeDirectory: (path) => around("makeDirectory", path, () => fs.makeDirectory(path)),
    watch: (directory, wake, signal) => fs.watch(directory, wake, signal),
  };
}
