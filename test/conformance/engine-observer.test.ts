/** The record engine by itself, timed by observers, on a store that can be cut, deafened and slowed. */
import { engineSuite } from "../support/engine.js";

engineSuite("observer");
