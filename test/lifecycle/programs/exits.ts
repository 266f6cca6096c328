/**
 * A program as users write it: opens an election, leads, follows, closes. No
 * process.exit: if anything of the library is still there, it never ends.
 */
import { openElection } from "conclave";

const election = await openElection({ name: "exits", backend: process.argv[2], ttlMs: 2_000 });
const watching = (async () => {
  for await (const leader of election.observe()) if (leader !== null) return leader.token;
  return undefined;
})();
election.on("leader", () => {});
const term = await election.campaign();
const seen = await watching;
await election.close();
console.log(JSON.stringify({ led: seen === term.token, reason: term.end?.reason }));
