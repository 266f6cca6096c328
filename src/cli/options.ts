import { InvalidArgumentError, Option } from "commander";
import { describe } from "../core/errors.js";
import { parseDuration } from "./duration.js";

export function durationOption(flags: string, description: string): Option {
  return new Option(`${flags} <duration>`, description).argParser((text: string) => {
    try {
      return parseDuration(text);
    } catch (error) {
      throw new InvalidArgumentError(describe(error));
    }
  });
}

export function countOption(flags: string, description: string, least: number, most: number): Option {
  return new Option(`${flags} <count>`, description).argParser((text: string) => {
    const count = /^[0-9]{1,6}$/.test(text) ? Number(text) : Number.NaN;
    if (count >= least && count <= most) return count;
    throw new InvalidArgumentError(`Write a whole number from ${least} to ${most}.`);
  });
}
