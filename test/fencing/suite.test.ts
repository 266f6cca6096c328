import { describe } from "vitest";
import { fencedRooms } from "./rooms.js";
import { fencedResourceSuite } from "./suite.js";

describe.each(fencedRooms)("fenced resource: $name", (room) => {
  fencedResourceSuite(room);
});
