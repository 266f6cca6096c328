/**
 * Who was leading when, put together from what nodes report and from what was
 * done to them. A frozen leader reports its end only when it wakes up, and a
 * killed one never: its term ended at its deadline, or when it died.
 */

export interface TermView {
  readonly node: string;
  readonly token: string;
  readonly from: number;
  /** When it was over; `undefined` while it may go on. */
  readonly to?: number;
  /** When it is over unless renewed: the holder's own deadline. */
  readonly deadline?: number;
  /** When the others may take over unless it is renewed: the deadline and the margin. */
  readonly leaseEnd?: number;
  /** When it was frozen or killed leading and so stopped acting, whatever it still holds. */
  readonly stoppedAt?: number;
  /** How it ended: resigned, closed, expired, revoked, or killed. */
  readonly reason?: string;
}

export type Terms = readonly TermView[];

/** Enough for minutes of flapping; the page shows the last one. */
const MOST_TERMS = 80;

export function began(terms: Terms, node: string, token: string, at: number): Terms {
  // Whoever was leading before, and could not say so, was past its deadline by then.
  const closed = terms.map((term) => (isOpen(term) && overdue(term, at) ? over(term, at) : term));
  return [...closed, { node, token, from: at }].slice(-MOST_TERMS);
}

export function leased(terms: Terms, token: string, deadline: number, leaseEnd: number): Terms {
  return change(terms, token, ({ stoppedAt: _woken, ...term }) =>
    isOpen(term) ? { ...term, deadline, leaseEnd } : term,
  );
}

export function ended(terms: Terms, token: string, at: number, reason: string): Terms {
  return change(terms, token, (term) => ({ ...over(term, at), reason }));
}

/** Frozen or killed at this instant. */
export function stopped(terms: Terms, node: string, at: number): Terms {
  return terms.map((term) =>
    term.node === node && isOpen(term) ? { ...term, stoppedAt: term.stoppedAt ?? at } : term,
  );
}

/** Its process is gone, and with it whatever it held. */
export function died(terms: Terms, node: string, at: number): Terms {
  return terms.map((term) =>
    term.node === node && isOpen(term) ? { ...over(term, term.stoppedAt ?? at), reason: "killed" } : term,
  );
}

function over(term: TermView, at: number): TermView {
  return { ...term, to: Math.max(term.from, Math.min(at, term.to ?? at, term.deadline ?? at)) };
}

function isOpen(term: TermView): boolean {
  return term.to === undefined;
}

function overdue(term: TermView, at: number): boolean {
  return term.deadline !== undefined && term.deadline <= at;
}

function change(terms: Terms, token: string, to: (term: TermView) => TermView): Terms {
  return terms.map((term) => (term.token === token ? to(term) : term));
}
