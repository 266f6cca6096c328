/**
 * Why a token: A leads and sends a write that is long on its way. Meanwhile
 * leadership passes to B, which writes too. When A's write arrives, the ledger has
 * seen a newer token and refuses.
 */
import { Election, memoryBackend } from "conclave";

/** A resource that remembers the highest token it has seen. */
class Ledger {
  #highest = -1n;

  write(who: string, token: bigint): void {
    if (token < this.#highest) {
      console.log(`${who} refused: its token is older than one already seen`);
      return;
    }
    this.#highest = token;
    console.log(`${who} accepted`);
  }
}

const ledger = new Ledger();
const backend = memoryBackend();
await using a = new Election({ name: "ledger", backend, id: "a" });
await using b = new Election({ name: "ledger", backend, id: "b" });

const first = await a.campaign();
ledger.write("A's first write", first.token);
const onItsWay = first.token; // the second write: sent now, delivered much later

await first.resign();
const second = await b.campaign();
console.log(`B's token is higher: ${second.token > first.token}`);
ledger.write("B's write", second.token);
ledger.write("A's late write", onItsWay);
await second.resign();
