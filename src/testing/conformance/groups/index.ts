import type { Group } from "../group.js";
import { abort } from "./abort.js";
import { askedAt } from "./asked-at.js";
import { cancel } from "./cancel.js";
import { closing } from "./closing.js";
import { elections } from "./election.js";
import { expiry } from "./expiry.js";
import { grant } from "./grant.js";
import { guarantees } from "./guarantees.js";
import { lost } from "./lost.js";
import { names } from "./names.js";
import { observe } from "./observe.js";
import { processes } from "./processes.js";
import { records } from "./records.js";
import { release } from "./release.js";
import { tokens } from "./tokens.js";

export const groups: readonly Group[] = [
  guarantees,
  grant,
  askedAt,
  lost,
  tokens,
  release,
  abort,
  cancel,
  expiry,
  observe,
  names,
  records,
  elections,
  closing,
  processes,
];
