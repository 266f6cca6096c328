import { ConclaveError } from "../../kit/errors.js";

export function closedBackend(): ConclaveError {
  return new ConclaveError("state", "this ZooKeeper backend is closed; open a new one");
}
