import { failingAgents, lastDays, troubleOf } from './trouble';

const usage = (key: string, tasks: number, failed: number) => ({
  key,
  tasks,
  failed,
  seconds: 0,
  calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  cache_write_tokens: 0,
  cost: null,
  agent_cost: 0,
  unpriced_tokens: 0,
});
const NOON = Date.parse('2026-03-02T12:00:00Z');
const task = (state: 'completed' | 'failed' | 'rejected') => ({
  task_id: 'id',
  request_id: 'id',
  state,
  created_at: '2026-03-01T00:00:00Z',
});

describe('the first page', () => {
  it('has every day, also over the end of a month and without tasks', () => {
    const days = lastDays(
      [usage('2026-03-02', 4, 1), usage('2026-02-28', 2, 0), usage('2020-01-01', 9, 9)],
      4,
      NOON,
    );
    expect(days).toEqual([
      { day: '2026-02-27', tasks: 0, failed: 0 },
      { day: '2026-02-28', tasks: 2, failed: 0 },
      { day: '2026-03-01', tasks: 0, failed: 0 },
      { day: '2026-03-02', tasks: 4, failed: 1 },
    ]);
  });

  it('has the agents that fail most first, and none that do not fail', () => {
    const found = failingAgents([
      usage('fine', 9, 0),
      usage('some', 10, 1),
      usage('all', 2, 2),
      usage('more', 5, 5),
    ]);
    expect(found.map(({ key }) => key)).toEqual(['more', 'all', 'some']);
  });

  it('has the reason why a schedule needs attention', () => {
    const fine = { paused_reason: null, last_outcome: null, recent_tasks: [task('completed')] };
    const last = (outcome: 'refused' | 'missed' | 'skipped', reason: string | null) => ({
      outcome,
      reason,
      due_at: '',
      at: '',
    });
    expect(troubleOf(fine)).toBeUndefined();
    expect(troubleOf({ ...fine, last_outcome: last('skipped', 'the task before runs') })).toBeUndefined();
    expect(troubleOf({ ...fine, last_outcome: last('refused', 'no such agent') })).toBe(
      'the last time was refused: no such agent',
    );
    expect(troubleOf({ ...fine, last_outcome: last('missed', null) })).toBe('the last time was missed');
    expect(troubleOf({ ...fine, paused_reason: 'no such time zone' })).toBe(
      'paused by Baton: no such time zone',
    );
    expect(troubleOf({ ...fine, recent_tasks: [task('completed'), task('failed'), task('rejected')] })).toBe(
      '2 of the last 3 tasks failed',
    );
  });
});
