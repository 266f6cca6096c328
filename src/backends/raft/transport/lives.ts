/**
 * Which processes have said that they are a certain voter. Each start of a voter
 * has an id of its own, its life. A life that comes back after a newer one was
 * met is no restart: two processes use the name, each with a vote of its own, and
 * two leaders could have a majority. Neither of them is believed any more.
 */

/** Lives of one name that are remembered. */
const MOST_BEFORE = 1_000;

interface Known {
  now: string;
  /** The moment at which `now` was first met. */
  since: number;
  readonly before: Set<string>;
  twins: boolean;
}

export class Lives {
  /** Of this process. */
  readonly own: string;
  readonly #known = new Map<string, Known>();
  readonly #newer: ((name: string, life: string) => void)[] = [];
  #twin: (() => void) | undefined;
  #moment = 0;

  constructor(own: string) {
    this.own = own;
  }

  /** Called when a voter is there in a newer life: connections of older ones are out of date. */
  onNewer(listener: (name: string, life: string) => void): void {
    this.#newer.push(listener);
  }

  /** Called when another voter says that this process has a twin. */
  onTwin(listener: () => void): void {
    this.#twin = listener;
  }

  /** This process has a twin, as another voter has found. */
  meetTwin(): void {
    this.#twin?.();
  }

  /** To be taken before a peer is asked for the proof that it has the key. */
  moment(): number {
    return ++this.#moment;
  }

  /**
   * Somebody has proved to be this voter, in answer to something that was sent at `asked` or
   * later. `"late"`: asked before the life that is known now was met, so perhaps by a process
   * that has ended meanwhile. It says nothing; whoever lives comes back and is asked anew.
   */
  meet(name: string, life: string, asked: number): "alone" | "twin" | "late" {
    const known = this.#known.get(name);
    if (known === undefined)
      this.#known.set(name, { now: life, since: this.moment(), before: new Set(), twins: false });
    else if (known.before.has(life) && known.twins) return "twin";
    else if (known.now !== life && asked < known.since) return "late";
    else if (known.before.has(life)) {
      this.#separate(name, known);
      return "twin";
    } else if (known.now !== life) {
      if (known.before.size >= MOST_BEFORE) known.before.clear();
      known.before.add(known.now);
      Object.assign(known, { now: life, since: this.moment(), twins: false });
      for (const tell of this.#newer) tell(name, life);
    }
    return "alone";
  }

  /** The newest life is one of two as well: it is sent away, and refused when it comes back. */
  #separate(name: string, known: Known): void {
    known.before.add(known.now);
    known.twins = true;
    for (const tell of this.#newer) tell(name, "");
  }
}

/** What is said where one of two processes with the same name is refused. */
export function twinsOf(name: string): string {
  return `two processes say that they are voter "${name}", and neither of them is believed any more; stop both, move the directories of both away, and start one`;
}
