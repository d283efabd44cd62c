import { eventJson, logRows } from './log-rows.js';

const ids = { taskId: 'a "task"', contextId: 'a context' };
const said = (kind: string, rest: string, { taskId, contextId } = ids): string =>
  `{"${kind}":{"taskId":${JSON.stringify(taskId)},"contextId":${JSON.stringify(contextId)},${rest}}}`;
const status = (n: number) => ({ json: said('statusUpdate', `"n":${n}`), artifact: undefined });
const chunk = (artifact: string, text: string) => ({
  json: said('artifactUpdate', `"t":"${text}"`),
  artifact,
});
const rowsOf = (events: Parameters<typeof logRows>[0]) =>
  logRows(events, ids).map(({ first, last, artifact }) => [first, last, artifact]);

it('puts neighbours into one row, of one artifact at most', () => {
  expect(rowsOf([status(1), chunk('7', 'a'), chunk('7', 'b'), status(2)])).toEqual([[1, 4, '7']]);
  expect(rowsOf([status(1), status(2)])).toEqual([[1, 2, '0']]);
  expect(rowsOf([chunk('7', 'a'), chunk('8', 'b'), status(1), chunk('7', 'c')])).toEqual([
    [undefined, 1, '7'],
    [2, 3, '8'],
    [undefined, 4, '7'],
  ]);
  expect(rowsOf([])).toEqual([]);
});

it('keeps rows so small that Postgres need not compress them; a larger event has its own', () => {
  const rows = logRows(
    [
      ...Array.from({ length: 100 }, () => chunk('7', 'ä'.repeat(100))),
      chunk('7', 'x'.repeat(5_000)),
      status(1),
    ],
    ids,
  );
  const sizes = rows.map(({ json }) => Buffer.byteLength(json));
  expect(rows.map(({ bytes }) => bytes)).toEqual(sizes);
  expect(sizes.filter((bytes) => bytes > 1_900)).toHaveLength(1);
  expect(Math.min(...sizes.slice(0, -3))).toBeGreaterThan(1_500);
  expect(rows.at(-1)).toMatchObject({ first: undefined, last: 102 });
});

it('leaves out the ids of the task and no others, and puts them back', () => {
  const other = { ...ids, contextId: 'another' };
  const texts = [
    said('statusUpdate', '"status":{}'),
    said('artifactUpdate', '"artifact":{}'),
    said('statusUpdate', '"status":{}', other),
    said('somethingElse', '"a":1'),
    '{"statusUpdate":{"taskId":"a \\"task\\"","status":{}}}',
  ];
  const rows = texts.flatMap((json) => logRows([{ json, artifact: undefined }], ids));
  expect(rows.map(({ json }) => json)).toEqual([
    '{"statusUpdate":{"status":{}}}',
    '{"artifactUpdate":{"artifact":{}}}',
    ...texts.slice(2),
  ]);
  const read = rows.map(({ json }) =>
    eventJson({ sequence: 1, attempt: 1, context_id: ids.contextId, json, accepted_at: null }, ids.taskId),
  );
  expect(read).toEqual(texts);
  expect(logRows([{ json: texts[0]!, artifact: undefined }], undefined)[0]?.json).toBe(texts[0]);
});
