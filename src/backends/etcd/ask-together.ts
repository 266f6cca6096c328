/** Questions about many keys in one transaction. */
import { isRetriable } from "../../kit/errors.js";

/**
 * Asks about all at once. A refusal may concern one key only, because etcd grants
 * permissions by key: then each is asked about alone, and `failed` is called for
 * those that are refused. After any other failure it is called for all.
 */
export async function askTogether<Item, Answer>(
  items: readonly Item[],
  ask: (items: readonly Item[]) => Promise<Answer>,
  failed: (items: readonly Item[], error: unknown) => void,
): Promise<Answer[]> {
  try {
    return [await ask(items)];
  } catch (error) {
    if (items.length > 1 && !isRetriable(error))
      return (await Promise.all(items.map((item) => askTogether([item], ask, failed)))).flat();
    failed(items, error);
    return [];
  }
}
