/** Many are asked, and some of the answers are enough. */
import { ConclaveError, describe } from "../../kit/errors.js";

/** More than half. */
export function majorityOf(voters: number): number {
  return Math.floor(voters / 2) + 1;
}

/** So many that no majority is left without them. */
export function blockingOf(voters: number): number {
  return voters - majorityOf(voters) + 1;
}

/**
 * Collects answers, one per voter, until `decide` gives a result. It is asked
 * after every answer, and with `last` when no more will come. Rejects when it
 * still gives none: then it is not known.
 */
export function gather<Answer, Result>(
  asked: ReadonlyMap<string, Promise<Answer>>,
  decide: (answers: ReadonlyMap<string, Answer>, last: boolean) => Result | undefined,
): Promise<Result> {
  const answers = new Map<string, Answer>();
  const failures: string[] = [];
  let left = asked.size;
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      left--;
      const result = decide(answers, left === 0);
      if (result !== undefined) resolve(result);
      else if (left === 0) reject(noMajority(asked.size, answers.size, failures));
    };
    for (const [voter, answer] of asked) {
      answer.then(
        (value) => {
          answers.set(voter, value);
          settle();
        },
        (error: unknown) => {
          failures.push(`${voter}: ${describe(error)}`);
          settle();
        },
      );
    }
  });
}

function noMajority(asked: number, answered: number, failures: readonly string[]): ConclaveError {
  const why = failures.length > 0 ? ` (${failures.join("; ")})` : "";
  return new ConclaveError(
    "unavailable",
    `no majority: ${answered} of ${asked} voters answered, and not enough of them agreed${why}`,
  );
}
