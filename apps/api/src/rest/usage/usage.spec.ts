import { type FakeApi, startFakeApi } from '../../../../../test/support/api/fake-api.js';
import { csvOf } from './csv.js';
import { priceOf } from '@baton/config';

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi({
    MODEL_PRICES: '{"openai/*":{"input":1,"output":10},"openai/big":{"input":2,"cached":0.5,"output":20}}',
    MODEL_PRICES_CURRENCY: 'EUR',
  });
});
afterAll(() => api.close());

const usage = (query: string, token = 'caller', headers: Record<string, string> = {}) =>
  fetch(`${api.url}/v1/usage${query}`, { headers: { authorization: `Bearer ${token}`, ...headers } });

const tokens = {
  seconds: 3.5,
  calls: 2,
  inputTokens: 1_000_000,
  outputTokens: 100_000,
  cachedTokens: 400_000,
  cacheWriteTokens: 100_000,
  agentMicros: 0,
};
const SUMS = [
  { key: 'echo', model: 'openai/big', tasks: 2, failed: 1, ...tokens },
  { key: 'echo', model: 'openai/small', tasks: 1, failed: 0, ...tokens },
  { key: 'echo', model: 'own/model', tasks: 1, failed: 0, ...tokens },
  {
    key: '=cmd|"x"',
    model: '',
    tasks: 1,
    failed: 0,
    ...tokens,
    inputTokens: 0,
    outputTokens: 0,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    agentMicros: 250_000,
  },
];
const SINCE = '2026-01-31T00:00:00.000Z';

describe('the usage of tasks', () => {
  const asked: unknown[] = [];
  beforeEach(() => {
    asked.length = 0;
    api.usageReports.agentTimes = async () => [];
    api.usageReports.read = async ({ tenantId }, ...rest) => {
      asked.push([tenantId, ...rest]);
      return { sums: SUMS, isWhole: true };
    };
  });

  it('has the durations of each agent’s tasks, and the end of the last', async () => {
    const lastEndedAt = new Date('2026-01-31T07:00:00Z');
    const of: unknown[] = [];
    api.usageReports.agentTimes = async ({ tenantId }, { agentIds }) => {
      of.push([tenantId, agentIds]);
      return [{ agentId: 'echo', p95Seconds: 12.34567, lastEndedAt }];
    };
    const { usage: rows } = (await (await usage(`?by=agent&since=${SINCE}`)).json()) as {
      usage: Record<string, unknown>[];
    };
    expect(of).toEqual([['tenant-1', ['echo', '=cmd|"x"']]]);
    expect(rows[0]).toMatchObject({
      key: 'echo',
      p95_seconds: 12.346,
      last_ended_at: '2026-01-31T07:00:00.000Z',
    });
    expect(Object.keys(rows[1]!)).not.toContain('p95_seconds');
    await usage(`?by=model&since=${SINCE}`);
    expect(of).toHaveLength(1);
  });

  it('is summed up by what is asked for, with the cost of all models that have a price', async () => {
    const answer = await usage(`?by=agent&agent=echo&since=${SINCE}&until=2026-02-01T00:59:59Z`);
    expect(await answer.json()).toEqual({
      by: 'agent',
      since: SINCE,
      until: '2026-02-01T00:00:00.000Z',
      complete: true,
      currency: 'EUR',
      unpriced_models: ['own/model'],
      usage: [
        {
          key: 'echo',
          tasks: 4,
          failed: 1,
          seconds: 10.5,
          calls: 6,
          input_tokens: 3_000_000,
          output_tokens: 300_000,
          cached_tokens: 1_200_000,
          cache_write_tokens: 300_000,
          // 0.6 × 2 + 0.4 × 0.5 + 0.1 × 20, and 1 × 1 + 0.1 × 10
          cost: 5.4,
          agent_cost: 0,
          unpriced_tokens: 1_100_000,
        },
        expect.objectContaining({ key: '=cmd|"x"', cost: 0.25, agent_cost: 0.25, unpriced_tokens: 0 }),
      ],
    });
    expect(asked).toEqual([
      [
        'tenant-1',
        'agent',
        { since: new Date(SINCE), until: new Date('2026-02-01T00:00:00Z'), agentId: 'echo' },
      ],
    ]);
  });

  it('is that of the last seven days by default, from the beginning of an hour', async () => {
    const { since, until } = (await (await usage('')).json()) as { since: string; until: string };
    expect(since).toMatch(/:00:00\.000Z$/);
    const days = (Date.parse(until) - Date.parse(since)) / 86_400_000;
    expect(days).toBeGreaterThanOrEqual(7);
    expect(days).toBeLessThan(7 + 1 / 24);
  });

  it('comes as CSV in which no cell is a formula', async () => {
    for (const answer of [
      await usage('?format=csv&by=agent'),
      await usage('?by=agent', 'caller', { accept: 'text/csv' }),
    ]) {
      expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
      expect(answer.headers.get('content-disposition')).toBe('attachment; filename="usage-by-agent.csv"');
      expect((await answer.text()).split('\r\n')).toEqual([
        'agent,tasks,failed,seconds,calls,input_tokens,output_tokens,cached_tokens,cost_EUR,unpriced_tokens,cache_write_tokens,agent_cost',
        'echo,4,1,10.5,6,3000000,300000,1200000,5.4,1100000,300000,0',
        `"'=cmd|""x""",1,0,3.5,2,0,0,0,0.25,0,0,0.25`,
        '',
      ]);
    }
    expect(csvOf([['+1', '-1', '@x', '\tx', 'a,b', -1, null]])).toBe(`'+1,'-1,'@x,'\tx,"a,b",-1,\r\n`);
  });

  it('refuses what it cannot sum up, and callers who see no tasks', async () => {
    expect((await usage('?by=weather')).status).toBe(400);
    expect((await usage('?format=xml')).status).toBe(400);
    expect((await usage('?agent=nobody')).status).toBe(404);
    expect((await usage('', 'nobody')).status).toBe(403);
  });
});

it('takes the price under the longest name that fits a model', () => {
  const [short, long, exact] = [1, 2, 3].map((input) => ({ input, output: 0 }));
  const prices = { 'a/*': short!, 'a/b*': long!, 'a/bc': exact! };
  expect(
    ['a/x', 'a/bcd', 'a/bc', 'c/x', '', 'toString'].map((model) => priceOf(model, prices)?.input),
  ).toEqual([1, 2, 3, undefined, undefined, undefined]);
  expect(priceOf('a/x', undefined)).toBeUndefined();
});
