import { dataPart, type Part, TaskState, textPart } from '@baton/a2a';
import { endTurn, newTask, openStores, startTask, type Stores, textMessage } from '../stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

describe('the beginning of a first message', () => {
  const beginningOf = async (parts: Part[]): Promise<string | undefined> => {
    const input = newTask();
    const task = { ...input.task, history: [{ ...textMessage(''), parts }] };
    await stores.tasks.create({ ...input, task });
    const listed = { tenantId: input.tenantId, pageSize: 1, includeArtifacts: false, withFirstMessage: true };
    const { tasks } = await stores.tasks.list(listed);
    return tasks[0]?.firstMessage;
  };

  it.each([
    ['is one line', [textPart(' Where\n\n is  it? ')], 'Where is it?'],
    ['is cut', [textPart('x'.repeat(500))], `${'x'.repeat(200)}…`],
    ['joins parts', [textPart('Look:'), dataPart({ parcel: 4711 })], 'Look: {"parcel":4711}'],
    ['has what Postgres has no text for', [textPart('a\0b \ud83d\ude00')], 'a\0b \ud83d\ude00'],
    ['is left out if the message is too large', [textPart('x'.repeat(70_000))], undefined],
    ['is left out if it says nothing', [textPart('  ')], undefined],
  ])('%s', async (_, parts, beginning) => {
    expect(await beginningOf(parts)).toBe(beginning);
  });

  it('is not read for other lists', async () => {
    const input = newTask();
    await stores.tasks.create(input);
    const { tasks } = await stores.tasks.list({
      tenantId: input.tenantId,
      pageSize: 1,
      includeArtifacts: false,
    });
    expect(tasks[0]).not.toHaveProperty('firstMessage');
  });

  it('is cut before the match only if more than 60 characters come before it', async () => {
    const begin = async (before: number): Promise<string> => {
      const input = newTask({ text: `<${'x'.repeat(before - 1)}needle` });
      await stores.tasks.create(input);
      const { tasks } = await stores.tasks.search({ tenantId: input.tenantId, pageSize: 1 }, 'needle', 10);
      return tasks[0]!.firstMessage!.slice(0, 2);
    };
    expect([await begin(59), await begin(60)]).toEqual(['<x', '…x']);
  });

  it('is the text around the match', async () => {
    const input = newTask({ text: `${'begin '.repeat(40)}the Needle ${'end '.repeat(40)}` });
    await stores.tasks.create(input);
    const { tasks } = await stores.tasks.search({ tenantId: input.tenantId, pageSize: 1 }, 'needle', 10);
    expect(tasks[0]!.firstMessage).toMatch(/^… begin .*begin the Needle end end .*…$/);
    expect(tasks[0]!.firstMessage!.length).toBeLessThanOrEqual(201);
    const parts = [textPart('x'.repeat(300)), textPart('a needle')];
    const later = newTask({ tenantId: input.tenantId, task: { history: [{ ...textMessage(''), parts }] } });
    await stores.tasks.create(later);
    const both = await stores.tasks.search({ tenantId: input.tenantId, pageSize: 1 }, 'needle', 10);
    expect(both.tasks[0]!.firstMessage).toMatch(/^a needle xxx/);
    const whole = await stores.tasks.search({ tenantId: input.tenantId, pageSize: 1 }, input.task.id, 10);
    expect(whole.tasks[0]!.firstMessage).toMatch(/^begin begin/);
  });
});

describe('the last error', () => {
  it('is that of the last turn with one, of a task that has failed', async () => {
    const run = await startTask(stores);
    const listed = { tenantId: run.tenantId, pageSize: 1, includeArtifacts: false, withFirstMessage: true };
    const error = {
      attempt: 1,
      at: '2026-01-31T12:00:00.000Z',
      name: 'Error',
      message: 'The desk is closed. It opens at 8.',
    };
    await stores.runs.noteError(run, error);
    expect((await stores.tasks.list(listed)).tasks[0]).not.toHaveProperty('lastError');
    await endTurn(stores, run, 2, TaskState.TASK_STATE_FAILED);
    expect((await stores.tasks.list(listed)).tasks[0]!.lastError).toBe(error.message);
  });
});
