/** What is known of peers and of their terms after one of them has said a word. Pure. */
import { began, ended, leased } from "../terms.js";
import type { Terms } from "../terms.js";
import type { PeerRole } from "./model.js";
import type { Word } from "./wire.js";

export function roleAfter(role: PeerRole, word: Word): PeerRole {
  switch (word.kind) {
    case "elected":
    case "lease":
      return { ...role, token: word.token, deadline: word.at + word.remainingMs };
    case "ended":
      return { ...role, token: null, deadline: null };
    case "follows":
      return { ...role, follows: word.leader };
    case "ballot": {
      const { term, vote, leader, promised, unfit, at } = word;
      const to = promised && { to: promised.to, until: at + promised.leftMs };
      return { ...role, follows: promised?.to ?? null, ballot: { term, vote, leader, promised: to, unfit } };
    }
    case "ready":
    case "says":
      return role;
  }
}

export function termsAfter(terms: Terms, node: string, word: Word): Terms {
  switch (word.kind) {
    case "elected": {
      const deadline = word.at + word.remainingMs;
      return leased(began(terms, node, word.token, word.at), word.token, deadline, deadline);
    }
    case "lease": {
      const deadline = word.at + word.remainingMs;
      return leased(terms, word.token, deadline, deadline);
    }
    case "ended":
      return ended(terms, word.token, word.at, word.reason);
    case "ready":
    case "follows":
    case "ballot":
    case "says":
      return terms;
  }
}
