/** Races: real processes on a real store, stopped and killed, and a judge of what they wrote down. */
export { raceCandidate } from "./candidate.js";
export type { RaceCandidateOptions } from "./candidate.js";
export { judgeDirectory } from "./checker.js";
export type { Demands, Judgement } from "./checker.js";
export type { Contest, RaceRequest } from "./nemesis.js";
export { race } from "./race.js";
