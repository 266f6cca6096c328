/**
 * Where a backend keeps its elections, for people. Known of backends that were
 * opened from a URL; of others only the name is.
 */
import type { Backend } from "../seam/backend.js";

interface Place {
  readonly text: string;
  /** No store was named: files of this machine were taken. */
  readonly byDefault: boolean;
}

const places = new WeakMap<Backend, Place>();

/** `text`: no credentials in it. */
export function rememberWhere(backend: Backend, text: string, byDefault = false): void {
  places.set(backend, { text, byDefault });
}

/** `undefined`: the backend was not opened from a URL. */
export function whereOf(backend: Backend): string | undefined {
  return places.get(backend)?.text;
}

/** For log lines: kind of store and, where it is known, the place. */
export function storeText(backend: Backend): string {
  const place = places.get(backend);
  if (place === undefined) return backend.name;
  return `${backend.name}, ${place.text}${place.byDefault ? ", on this machine only" : ""}`;
}
