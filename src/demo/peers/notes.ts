/** What peers report, in words for somebody who learns how elections work. */
import type { Algorithm } from "../choices.js";
import type { Note, PeerRole } from "./model.js";
import type { Word } from "./wire.js";

export type Telling = Omit<Note, "id" | "at">;

const MOST_SHOWN = 5;

/** The end of a number: all terms of one run begin alike. */
export function short(token: string): string {
  return token.length > 8 ? `…${token.slice(-MOST_SHOWN)}` : token;
}

/** What a term is called. */
export function numberOf(algorithm: Algorithm): string {
  return algorithm === "raft" ? "term" : "number";
}

/** `undefined`: nothing that people need to be told. `before`: what was known of the peer. */
export function noteOf(node: string, word: Word, before: PeerRole): Telling | undefined {
  switch (word.kind) {
    case "ready":
    case "lease":
    case "follows":
      return undefined;
    case "elected":
      return {
        node,
        algorithm: word.algorithm,
        text: `leads, ${numberOf(word.algorithm)} ${short(word.token)}`,
        weight: "leader",
      };
    case "ended":
      return { node, algorithm: word.algorithm, text: endingOf(word), weight: "leader" };
    case "says":
      return { node, algorithm: word.algorithm, text: word.text, weight: "plain" };
    case "ballot":
      return ballotNote(node, word, before);
  }
}

function endingOf({ algorithm, token, reason }: Word & { readonly kind: "ended" }): string {
  const which = `${numberOf(algorithm)} ${short(token)}`;
  if (reason === "expired")
    return `stops: no majority has acknowledged a beat of ${which} in time, so its lease is over`;
  if (reason === "revoked") return `stops: ${which} is over, it has heard of another leader`;
  return `gives ${which} up`;
}

function ballotNote(
  node: string,
  { term, vote, leader, unfit }: Word & { readonly kind: "ballot" },
  { ballot }: PeerRole,
): Telling | undefined {
  const telling = (text: string): Telling => ({ node, algorithm: "raft", text, weight: "plain" });
  if (isOut(unfit) && !isOut(ballot?.unfit ?? null))
    return telling(`takes no part: ${withoutReasons(unfit ?? "")}`);
  if (unfit === null && ballot !== null && ballot.unfit !== null) return telling("takes part");
  if (term === "0" || (term === ballot?.term && vote === ballot.vote && leader === ballot.leader))
    return undefined;
  const what = ` in term ${short(term)}`;
  if (leader !== null)
    return telling(`acknowledges ${leader === node ? "itself" : leader} as leader of term ${short(term)}`);
  if (vote === null)
    return telling(`has heard of term ${short(term)} from the others, and will not vote in it`);
  return telling(`votes for ${vote === node ? "itself" : vote}${what}: on its disk before it answers`);
}

/** Not only because it has just been started. */
function isOut(unfit: string | null): boolean {
  return unfit !== null && !unfit.endsWith("is starting");
}

function withoutReasons(text: string): string {
  return text.replace("this voter", "it").replace(/: .*$/s, "");
}
