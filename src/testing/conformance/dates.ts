/**
 * The date of this process, set forward or back for a test: what a store's
 * client that asks `Date` for the time would see if somebody set the clock.
 * Timers and `performance.now()` go on as they were.
 */
export class DateJump {
  #restore: (() => void) | undefined;

  jump(ms: number): void {
    this.end();
    const real = globalThis.Date;
    const now = (): number => real.now() + ms;
    const jumped = new Proxy(real, {
      construct: (target, args, newTarget) =>
        Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as Date,
      apply: () => new real(now()).toString(),
      get: (target, key, receiver) => (key === "now" ? now : Reflect.get(target, key, receiver)),
    });
    globalThis.Date = jumped;
    this.#restore = () => {
      // Somebody else may have put in theirs meanwhile: that one stays.
      if (globalThis.Date === jumped) globalThis.Date = real;
    };
  }

  end(): void {
    this.#restore?.();
    this.#restore = undefined;
  }
}
