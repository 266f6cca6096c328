/** Where elections and records live: below a root, one node for each part of a name. */
import { invalid } from "../../kit/errors.js";

/** Records are kept apart from elections, so that neither can be taken for the other. */
const RECORDS = "conclave.records";
/** Notes about who leads next. */
const NEXT = "conclave.next";
/** ZooKeeper's own nodes. */
const SYSTEM = "zookeeper";

/** Characters that ZooKeeper refuses in a path, halves of pairs included, and the one that escapes them. */
const REFUSED = /[%\ud800-\uf8ff\ufff0-\uffff]+/g;
/** An empty part of a name. Nothing else is written so: every other "%" is followed by digits. */
const EMPTY = "%";

export class Paths {
  /** Empty, or a path without a slash at its end. */
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /** The node whose children are the candidates. */
  election(name: string): string {
    if ([RECORDS, NEXT].some((taken) => `${name}/`.startsWith(`${taken}/`)))
      throw invalid(`election name ${JSON.stringify(name)} is taken by this library; choose another`);
    return `${this.root}/${name.split("/").map(encodePart).join("/")}`;
  }

  /** The node below which the records are. */
  get records(): string {
    return `${this.root}/${RECORDS}`;
  }

  /** Name of the record that this child of {@link records} is. */
  recordOf(child: string): string | undefined {
    try {
      return decodeURIComponent(child);
    } catch {
      return undefined; // another program's node
    }
  }

  record(name: string): string {
    return `${this.root}/${RECORDS}/${encodeWhole(name)}`;
  }

  /** Whom the leader of this election is about to hand its leadership to. */
  heir(name: string): string {
    return `${this.root}/${NEXT}/heir.${encodeWhole(name)}`;
  }

  /** Who let others go first at the present vacancy. */
  turn(name: string): string {
    return `${this.root}/${NEXT}/turn.${encodeWhole(name)}`;
  }

  /** What the leader of this election has published, where its own node is not to be written to. */
  value(name: string): string {
    return `${this.root}/${NEXT}/value.${encodeWhole(name)}`;
  }

  /** Name of the election whose node this is; `undefined` if it is none. */
  nameOf(path: string): string | undefined {
    const parts = path.slice(this.root.length + 1).split("/");
    try {
      return parts.map(decodePart).join("/");
    } catch {
      return undefined; // another program's name
    }
  }

  /** Whether elections may lie below this child of the root. */
  isPublic(child: string): boolean {
    return child !== RECORDS && child !== NEXT && !(this.root === "" && child === SYSTEM);
  }
}

/** A name as one part of a path. */
function encodeWhole(name: string): string {
  return encodeURIComponent(name).replaceAll(".", "%2E");
}

function encodePart(part: string): string {
  if (part === "") return EMPTY;
  if (part === "." || part === ".." || part === SYSTEM)
    return `%${part.charCodeAt(0).toString(16).toUpperCase()}${part.slice(1)}`;
  return part.replace(REFUSED, (text) =>
    [...Buffer.from(text)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
}

function decodePart(part: string): string {
  return part === EMPTY ? "" : decodeURIComponent(part);
}

/** The node above. */
export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** The last part of a path. */
export function childName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
