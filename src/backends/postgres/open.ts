/** Opens a URL: its connections are made by pg, so a pg that is not there is an error now and not at every attempt. */
import type { Backend } from "../../seam/backend.js";
import { clientClass } from "./dial.js";
import { openPostgres } from "./index.js";

export async function openWithPg(url: string | URL): Promise<Backend> {
  const backend = openPostgres(url);
  try {
    await clientClass();
    return backend;
  } catch (error) {
    await backend[Symbol.asyncDispose]();
    throw error;
  }
}
