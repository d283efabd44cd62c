import { MAX_CONTEXT_ID_LENGTH } from '@baton/a2a';
import { nameQuery } from '../../openapi/query-pipe.js';
import { newBulk } from './bulk-json.js';

describe('the filter of an operation on many tasks', () => {
  it('takes each id of a context that a message may have, as the list of tasks does', () => {
    const longest = 'c'.repeat(MAX_CONTEXT_ID_LENGTH);
    const parse = (id: string) =>
      newBulk.safeParse({ action: 'cancel', filter: { agent: 'echo', context_id: id } }).success;
    const query = nameQuery('Only tasks of this context');
    const read = (id: string) => query.transform(id, { type: 'query', data: 'context_id' });
    expect(parse(longest)).toBe(true);
    expect(read(longest)).toBe(longest);
    expect(parse(`${longest}c`)).toBe(false);
    expect(() => read(`${longest}c`)).toThrow(`at most ${MAX_CONTEXT_ID_LENGTH} characters`);
  });
});
