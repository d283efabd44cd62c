import { rpcPaths } from '../../libs/a2a/src/profiles/index.js';
import { AGENTS, callOf, TASKS, TENANTS } from './case.js';
import { allCases } from './cases.js';
import { coveringOf } from './covering.js';

describe('the calls of isolation by day', () => {
  const all = allCases();
  const byDay = coveringOf(all);
  const familyOf = (kind: string) =>
    [TASKS, AGENTS, TENANTS].find((family) => family.some((each) => each === kind));

  it('name at each path and method all that a call can name there: a task, an agent and a tenant in one way at least', () => {
    const namedIn = (cases: typeof all) =>
      new Set(cases.map((each) => `${callOf(each)} names ${String(familyOf(each.kind) ?? each.kind)}`));
    expect(namedIn(byDay)).toEqual(namedIn(all));
  });

  it('name in each operation of each version all kinds of things', () => {
    const namedIn = (cases: typeof all) =>
      new Set(cases.map(({ operation, kind }) => `${operation} names ${kind}`));
    expect(namedIn(byDay)).toEqual(namedIn(all));
  });

  it('name at each path of JSON-RPC all kinds of things', () => {
    const namedIn = (cases: typeof all) =>
      new Set(
        cases
          .filter((each) => rpcPaths().some(({ path }) => callOf(each).startsWith(`POST ${path} `)))
          .map((each) => `${callOf(each).split(' ')[1]} names ${each.kind}`),
      );
    expect(namedIn(byDay)).toEqual(namedIn(all));
  });

  it('leave out the other states and names of a thing alone', () => {
    const left = all.filter((each) => !byDay.includes(each));
    expect(left.length).toBeGreaterThan(0);
    expect(left.filter(({ kind }) => !familyOf(kind))).toEqual([]);
  });
});
