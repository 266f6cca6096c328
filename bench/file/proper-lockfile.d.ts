declare module "proper-lockfile" {
  interface Options {
    stale?: number;
    retries?: { forever?: boolean; factor?: number; minTimeout?: number; maxTimeout?: number };
    onCompromised?: (error: Error) => void;
  }
  const lockfile: {
    lock(file: string, options?: Options): Promise<() => Promise<void>>;
    check(file: string, options?: Options): Promise<boolean>;
  };
  export default lockfile;
}
