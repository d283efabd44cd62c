import { decodeJob, jobIdOf } from './job-catalog.js';

const data = { tenantId: 't', taskId: 'k', runId: 'r', attempt: 2 };

describe('the job catalog', () => {
  it('gives each try of a run an id of its own', () => {
    expect(jobIdOf({ name: 'run', data })).toBe('r-2');
    expect(jobIdOf({ name: 'run', data: { ...data, attempt: 3 } })).toBe('r-3');
  });

  it('decodes what it knows and drops what it does not', () => {
    expect(decodeJob('run', { ...data, extra: 1 })).toEqual({ name: 'run', data });
  });

  it.each([
    ['a job of another name', 'walk', data],
    ['a missing id', 'run', { ...data, runId: undefined }],
    ['an attempt that is no number', 'run', { ...data, attempt: '2' }],
    ['no data', 'run', null],
  ])('refuses %s and says why', (_case, name, bad) => {
    expect(() => decodeJob(name, bad)).toThrow(/is not in the catalog/);
  });
});
