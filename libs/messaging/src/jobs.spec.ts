import { decodeJob } from './jobs.js';
import { jobIdOf } from './run-queue.js';

const data = { tenantId: 't', taskId: 'k', runId: 'r', attempt: 2 };

describe('the job catalog', () => {
  it('gives each try of a run an id of its own', () => {
    expect(jobIdOf(data)).toBe('r-2');
    expect(jobIdOf({ ...data, attempt: 3 })).toBe('r-3');
  });

  it('decodes known jobs and drops others', () => {
    expect(decodeJob('run', 'run', { ...data, extra: 1 })).toEqual(data);
    expect(decodeJob('tick', 'tick', { tenantId: 't', scheduleId: 's', dueAt: 0 })).toEqual({
      tenantId: 't',
      scheduleId: 's',
      dueAt: new Date(0),
    });
  });

  it.each([
    ['a job of another name', 'walk', data],
    ['a missing id', 'run', { ...data, runId: undefined }],
    ['an attempt that is no number', 'run', { ...data, attempt: '2' }],
    ['no data', 'run', null],
  ])('refuses %s and says why', (_case, name, bad) => {
    expect(() => decodeJob('run', name, bad)).toThrow(/is not in the catalog/);
  });
});
