import { MANAGEMENT_ROUTES, type Route, ROUTES } from '../support/api/routes.js';
import { SCOPES, type Scope } from '../../libs/a2a/src/rights.js';
import { OPERATIONS } from '../../libs/a2a/src/operation.js';
import { type Column, isOfA2a, readRights, type Rights, rpcMethods, SCOPE_COLUMNS } from './rights.js';

const tables = readRights();
const rowsOf = (title: string) => tables.get(title)!;
const nameOf = ({ method, path }: Route): string => `${method} ${path}`;

const PUBLIC_ROUTES = ROUTES.filter((route) => !isOfA2a(route));

/** Who gets past the check of scopes: those of SCOPE_COLUMNS whose cell is no refusal for their scope. */
const enoughOf = (rights: Rights): Scope[] =>
  SCOPES.filter((scope) =>
    Object.entries(SCOPE_COLUMNS).some(([column, its]) => its === scope && rights[column as Column] !== '-'),
  );
const columnOf = (scope: Scope): Column =>
  Object.entries(SCOPE_COLUMNS).find(([, its]) => its === scope)![0] as Column;
const withAdmin = (scopes: readonly Scope[]): Scope[] =>
  SCOPES.filter((scope) => scope === 'admin' || scopes.includes(scope));

describe('the table of rights', () => {
  it('has a column for each scope', () => {
    expect(Object.values(SCOPE_COLUMNS).toSorted()).toEqual(SCOPES.toSorted());
  });

  it('has a row for each operation, and for no other', () => {
    const operations = new Set(rpcMethods().map(({ operation }) => operation));
    expect([...operations].sort()).toEqual(Object.keys(OPERATIONS).sort());
    const rows = new Set(rpcMethods().map(({ row }) => row));
    expect([...rowsOf('Operations').keys()].sort()).toEqual([...rows].sort());
  });

  it('has a row for each route of either port, and for no other', () => {
    expect([...rowsOf('Routes').keys()].sort()).toEqual(PUBLIC_ROUTES.map(nameOf).sort());
    expect([...rowsOf('Routes of the management port').keys()].sort()).toEqual(
      MANAGEMENT_ROUTES.map(nameOf).sort(),
    );
  });

  it('asks for the scopes that the operations declare, and lets guests in where they do', () => {
    for (const { operation, row } of rpcMethods()) {
      const rights = rowsOf('Operations').get(row)!;
      const { scopes, tokenRequired } = OPERATIONS[operation] as (typeof OPERATIONS)['listTasks'];
      expect([row, enoughOf(rights)]).toEqual([row, withAdmin(scopes)]);
      expect([row, rights.guest]).toEqual([row, tokenRequired === undefined ? 'yes' : '401']);
      expect([row, rights.nobody, rights.bad, rights.suspended]).toEqual([row, '401', '401', 'off']);
    }
  });

  it('asks for the scopes that the routes declare, and for a token unless they are open', () => {
    for (const route of [...PUBLIC_ROUTES, ...MANAGEMENT_ROUTES]) {
      const title = route.isManagement ? 'Routes of the management port' : 'Routes';
      const rights = rowsOf(title).get(nameOf(route))!;
      const { nobody, bad, guest, suspended, operator } = rights;
      const { access, scopes = [], moreScopes = scopes } = route;
      const name = nameOf(route);
      const isPublic = access === 'public';
      const isOptional = isPublic || access === 'optional-token';
      const isOpen = [nobody !== '401', bad !== '401', guest !== '401', suspended !== 'off'];
      if (access === 'operator') {
        expect([name, operator, new Set(Object.values(rights))]).toEqual([
          name,
          'in',
          new Set(['401', 'in']),
        ]);
        continue;
      }
      expect([name, ...isOpen]).toEqual([name, isOptional, isPublic, isOptional, isPublic]);
      expect([name, operator]).toEqual([name, bad]);
      // A route for tokens that declares no scope would be open to every token.
      if (isPublic) continue;
      expect([name, enoughOf(rights)]).toEqual([name, withAdmin(scopes)]);
      // The columns are tokens with one scope: where two are needed, the cell names the one that is missing.
      const half = scopes.filter((scope) => !moreScopes.includes(scope));
      const missing = half.map((scope) => rights[columnOf(scope)]);
      expect([name, missing]).toEqual([name, half.map(() => moreScopes[0])]);
    }
  });
});
