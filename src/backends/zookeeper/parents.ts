/** The nodes between the root and an election or a record. */
import { ConclaveError } from "../../kit/errors.js";
import type { CallLimits, ZooKeeperConnection } from "./client.js";
import { ERRNO, isErrno } from "./client/errors.js";
import type { Paths } from "./paths.js";

/** Creates them, the root excepted: one that does not exist is a wrong chroot, and nobody would look there. */
export async function makeParents(
  connection: ZooKeeperConnection,
  { root }: Pick<Paths, "root">,
  path: string,
  containers: boolean,
  limits: CallLimits,
): Promise<void> {
  await assertRoot(connection, root, limits);
  const parts = path.slice(root.length + 1).split("/");
  for (let i = 1; i <= parts.length; i++) {
    const node = `${root}/${parts.slice(0, i).join("/")}`;
    await makeNode(connection, node, containers, limits);
  }
}

async function makeNode(
  connection: ZooKeeperConnection,
  path: string,
  container: boolean,
  limits: CallLimits,
): Promise<void> {
  try {
    await connection.create(path, "", container ? "container" : "persistent", limits);
  } catch (error) {
    if (isErrno(error, ERRNO.nodeExists)) return;
    if (container && isErrno(error, ERRNO.unimplemented)) return makeNode(connection, path, false, limits);
    // Who may not create it need not, if it is there.
    if (isErrno(error, ERRNO.noAuth) && (await connection.exists(path, limits)) !== null) return;
    throw error;
  }
}

export async function assertRoot(
  connection: ZooKeeperConnection,
  root: string,
  limits: CallLimits,
): Promise<void> {
  if (root === "" || (await connection.exists(root, limits)) !== null) return;
  throw new ConclaveError(
    "invalid",
    `the chroot ${JSON.stringify(root)} does not exist in ZooKeeper: correct the path of the URL, or create the node ` +
      `(zkCli.sh create ${root})`,
  );
}
