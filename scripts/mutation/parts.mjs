/** What `make test-mutation` mutates, folder by folder, and the score that each has to reach. No braces: StrykerJS splits at commas. */
export const PARTS = {
  law: { goal: 90, files: ["src/law/*.ts"] },
  record: { goal: 90, files: ["src/record/*.ts"] },
  /** `isolate`: its tests replace modules of Node, so each file needs a process of its own. Slower. */
  fencing: { goal: 90, files: ["src/fencing/!(index).ts"], isolate: true },
  election: { goal: 0, files: ["src/election/*.ts", "src/lock/*.ts"] },
  kit: { goal: 0, files: ["src/kit/*.ts"] },
  /** The pure parts: what is due, what the ledger says, which instants a pattern names. */
  cron: { goal: 0, files: ["src/cron/@(schedule|ledger|timetable|zone).ts"] },
  /** Code of the backends that decides, and needs no server to do so. */
  file: { goal: 0, files: ["src/backends/file/@(envelope|names).ts"] },
  kubernetes: { goal: 0, files: ["src/backends/kubernetes/@(lease|microtime).ts"] },
};
