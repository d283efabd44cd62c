import { AGENTS, type Case, callOf, type Kind, TASKS, TENANTS } from './case.js';

/** Kinds that name the same thing: in another state, or by another name. */
const FAMILIES: readonly (readonly Kind[])[] = [TASKS, AGENTS, TENANTS];

/**
 * The part of the cases that runs by day. Each call names each family, and each operation names each kind, at one of its paths. The
 * paths that do the same share the kinds of a family out between them. Each operation begins with another kind, so that
 * a path names more than one.
 */
export function coveringOf(cases: readonly Case[]): Case[] {
  const calls = callsByFamily(cases);
  const keys = [...calls.keys()];
  return cases.filter((each) => {
    const family = familyOf(each);
    if (!family) return true;
    const key = keyOf(each, family);
    const siblings = calls.get(key)!;
    const rounds = Math.min(siblings.length, family.length);
    const turn = siblings.indexOf(callOf(each)) + keys.indexOf(key);
    return turn % rounds === family.indexOf(each.kind) % rounds;
  });
}

const familyOf = ({ kind }: Case): readonly Kind[] | undefined =>
  FAMILIES.find((family) => family.includes(kind));

const keyOf = ({ operation }: Case, family: readonly Kind[]): string => `${String(family)} ${operation}`;

/** The calls that do an operation and name a family. */
function callsByFamily(cases: readonly Case[]): Map<string, string[]> {
  const calls = new Map<string, Set<string>>();
  for (const each of cases) {
    const family = familyOf(each);
    if (!family) continue;
    const key = keyOf(each, family);
    calls.set(key, (calls.get(key) ?? new Set()).add(callOf(each)));
  }
  return new Map([...calls].map(([key, some]) => [key, [...some]]));
}
