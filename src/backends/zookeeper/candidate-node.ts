/**
 * One candidate's node in one election: an ephemeral node that lives as long as
 * its session. Used for one campaign; its token, once known, does not change.
 * What is not known (did the create arrive?) it remembers as unknown.
 */
import { SessionCandidate, type SessionCandidateRequest } from "../../session/session-candidate.js";
import type { Created } from "./client.js";

export interface NodeRequest extends SessionCandidateRequest {
  /** Node of the election. */
  readonly parent: string;
  /** Begin of the candidate's name; no other node of this election begins like it. */
  readonly prefix: string;
}

export class CandidateNode extends SessionCandidate {
  readonly parent: string;
  readonly prefix: string;
  /** Known once the create was answered. */
  path: string | undefined;
  token: bigint | undefined;
  /** A create was sent: the node may exist, whether or not an answer came. */
  sent = false;
  /** Nobody but the leader is before it: its turn may come at any moment. */
  next = false;
  /** Names of the leader that asked for us as its heir, and of those between us that were asked to give way. */
  heirOf: ReadonlySet<string> | undefined;
  /** When the last check was sent that found the node. */
  checkedAt = -Infinity;

  constructor(request: NodeRequest) {
    super(request);
    this.parent = request.parent;
    this.prefix = request.prefix;
  }

  entered({ path, stat }: Created): void {
    this.path = path;
    this.token = stat.czxid;
    this.sawToken(stat.czxid);
  }

  /** Another candidate that is before us: our token must be higher. */
  met(token: bigint): void {
    if (this.token === undefined || token < this.token) this.sawToken(token);
  }
}
