/** The record engine by itself, timed by the store, on a store that can be cut, deafened and slowed. */
import { engineSuite } from "../support/engine.js";

engineSuite("store");
