/** What can be chosen of the demo. Apart, so that the command line knows it without loading the demo. */

export const MOST_NODES = 20;

/** By which peers without a server elect. */
export const ALGORITHMS = ["raft", "bully"] as const;
export type Algorithm = (typeof ALGORITHMS)[number];
