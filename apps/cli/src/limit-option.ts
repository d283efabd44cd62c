import type { LimitOverrides } from '@baton/database';
import { LIMIT_NAMES, LIMITS, type LimitName } from '@baton/identity';
import { OperatorError } from './operator-error.js';

/** What an operator changes at once. */
export interface LimitChange {
  values: LimitOverrides;
  /** Limits that go back to the default. */
  defaults: readonly LimitName[];
}

/** `openStreams` as an option: `--open-streams`. */
export const optionOf = (name: LimitName): string =>
  `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** A number within the limit's bounds, or null for `none`. Throws OperatorError. */
export function parseLimit(name: LimitName, text: string): number | null {
  const { min, max, fractions, required } = LIMITS[name];
  if (text === 'none' && !required) return null;
  const value = (fractions ? /^\d{1,5}(\.\d{1,6})?$/ : /^\d{1,15}$/).test(text) ? Number(text) : NaN;
  if (value >= min && value <= max) return value;
  const kind = fractions ? 'a number of days, such as 30 or 0.5' : `a whole number from ${min} to ${max}`;
  throw new OperatorError(`${optionOf(name)}: "${text}" is not ${kind}${required ? '' : ', or none'}.`);
}

/** The limits that go back to the default: `open-streams`, several apart or with commas. Throws OperatorError. */
export function parseDefaults(texts: readonly string[], set: LimitOverrides): LimitName[] {
  const names = texts.flatMap((text) => text.split(',')).map(parseName);
  const both = names.find((name) => name in set);
  if (both === undefined) return names;
  throw new OperatorError(
    `${optionOf(both)} is given and named by --default as well: leave one of them out.`,
  );
}

function parseName(text: string): LimitName {
  const wanted = `--${text.trim().replace(/^--/, '')}`;
  const found = LIMIT_NAMES.find((name) => optionOf(name) === wanted || `--${name}` === wanted);
  if (found) return found;
  const known = LIMIT_NAMES.map((name) => optionOf(name).slice(2)).join(', ');
  throw new OperatorError(`--default: "${text}" is no limit: name one of ${known}.`);
}
