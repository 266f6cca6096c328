import type { Group } from "../group.js";
import { abort } from "./abort.js";
import { amnesia } from "./amnesia.js";
import { answers } from "./answers.js";
import { askedAt } from "./asked-at.js";
import { cancel } from "./cancel.js";
import { claims } from "./claims.js";
import { clocks, storeClock } from "./clocks.js";
import { closing } from "./closing.js";
import { elections } from "./election.js";
import { expiry } from "./expiry.js";
import { grant } from "./grant.js";
import { guarantees } from "./guarantees.js";
import { heirs } from "./heirs.js";
import { listing } from "./listing.js";
import { lost } from "./lost.js";
import { names } from "./names.js";
import { observe } from "./observe.js";
import { processes } from "./processes.js";
import { records } from "./records.js";
import { release } from "./release.js";
import { tokens } from "./tokens.js";
import { watching } from "./watch.js";

export const groups: readonly Group[] = [
  guarantees,
  grant,
  askedAt,
  lost,
  answers,
  tokens,
  release,
  claims,
  heirs,
  abort,
  cancel,
  expiry,
  clocks,
  storeClock,
  observe,
  names,
  records,
  listing,
  watching,
  amnesia,
  elections,
  closing,
  processes,
];
