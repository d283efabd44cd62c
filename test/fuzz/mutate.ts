import fc from 'fast-check';
import { junk } from './junk.js';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** In characters of JSON. What is larger is not repeated: four mutations would make gigabytes of it. */
const MAX_REPEATED = 20_000;

/** What is done to one place of a request. */
export interface Mutation {
  /** Which place: counted over all of them, beginning anew after the last. */
  place: number;
  act: 'replace' | 'drop' | 'rename' | 'wrap' | 'repeat' | 'add';
  value: unknown;
}

/** Up to `maxLength` mutations that put in what `value` makes. */
export const mutationsOf = (value: fc.Arbitrary<unknown>, maxLength = 4): fc.Arbitrary<Mutation[]> =>
  fc.array(
    fc.record({
      place: fc.nat(200),
      act: fc.constantFrom('replace', 'replace', 'replace', 'drop', 'rename', 'wrap', 'repeat', 'add'),
      value,
    }),
    { minLength: 0, maxLength },
  );

export const mutations = mutationsOf(junk);

/** The value with every mutation done to it, one after the other. */
export function mutate(value: unknown, list: readonly Mutation[]): unknown {
  const root = { root: structuredClone(value) };
  // A copy each time: what is put in may be changed by the next one.
  for (const mutation of list) mutateOnce(root, { ...mutation, value: structuredClone(mutation.value) });
  return root.root;
}

/** A place: the value under a key of an object or a list. */
type Place = [owner: Record<string, unknown>, key: string];

function mutateOnce(root: Record<string, unknown>, { place, act, value }: Mutation): void {
  const places = [...placesIn(root)];
  const found = places[place % places.length];
  if (!found) return;
  const [owner, key] = found;
  if (act === 'replace') owner[key] = value;
  else if (act === 'wrap') owner[key] = place % 2 ? [owner[key]] : { [key]: owner[key] };
  else if (act === 'drop') remove(owner, key);
  else if (act === 'add') add(owner[key], value);
  else if (act === 'repeat' && Array.isArray(owner) && JSON.stringify(owner[key]).length < MAX_REPEATED)
    owner.push(...Array.from({ length: 50 }, () => structuredClone(owner[key])));
  else if (!Array.isArray(owner) && owner !== root) {
    define(owner, act === 'rename' && typeof value === 'string' ? value : `${key}_`, owner[key]);
    if (act === 'rename') remove(owner, key);
  }
}

function* placesIn(owner: Record<string, unknown>, depth = 0): Generator<Place> {
  for (const key of Object.keys(owner)) {
    yield [owner, key];
    const value = owner[key];
    if (typeof value === 'object' && value !== null && depth < 20) {
      yield* placesIn(value as Record<string, unknown>, depth + 1);
    }
  }
}

function remove(owner: Record<string, unknown>, key: string): void {
  if (Array.isArray(owner)) owner.splice(Number(key), 1);
  else Reflect.deleteProperty(owner, key);
}

function add(target: unknown, value: unknown): void {
  if (Array.isArray(target)) target.push(value);
  else if (typeof target === 'object' && target !== null) {
    define(target, typeof value === 'string' ? value : 'more', value);
  }
}

/** Also `__proto__` becomes a member of its own, as in parsed JSON. */
const define = (owner: object, key: string, value: unknown): void =>
  void Object.defineProperty(owner, key, { value, enumerable: true, configurable: true, writable: true });
