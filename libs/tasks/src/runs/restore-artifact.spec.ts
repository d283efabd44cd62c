import { type EventPayload, type TaskArtifactUpdateEvent } from '@baton/a2a';
import { artifact, claimedRun } from './claimed-run.fixture.js';
import { restoreArtifact } from './restore-artifact.js';
import { TurnOutput } from './turn-output.js';

const update = (text: string, append: boolean): TaskArtifactUpdateEvent => ({
  taskId: 'task',
  contextId: 'context',
  lastChunk: false,
  metadata: undefined,
  artifact: artifact('a', text),
  append,
});

/** A log of an artifact, in pages, as far as a restore sees it. */
const logOf = (touched: boolean, ...pages: TaskArtifactUpdateEvent[][]) => ({
  isArtifactTouched: async () => touched,
  artifactPage: async (_cut: unknown, after: number) => ({
    updates: pages[after] ?? [],
    next: after + 1 < pages.length ? after + 1 : undefined,
  }),
});

async function restore(log: ReturnType<typeof logOf>) {
  const said: [unknown, boolean, boolean][] = [];
  const writer = {
    write: async (payload: EventPayload, isAgents?: boolean) => {
      if (payload.$case !== 'artifactUpdate') throw new Error('not an artifact');
      const { artifact: of, append } = payload.value;
      said.push([of?.parts[0]?.content?.value, append, isAgents ?? true]);
    },
  };
  const run = claimedRun({ attempt: 2, artifactsAreWhole: false });
  const goesOn = await restoreArtifact(log, { run, writer, signal: new AbortController().signal }, 'a');
  return { said, goesOn };
}

describe('an artifact that is too large to be held (invariant 10)', () => {
  it('is published again page by page, in place of the output of a dead attempt', async () => {
    const log = logOf(true, [update('one', true), update('two', true)], [update('three', true)]);
    expect(await restore(log)).toEqual({
      said: [
        ['one', false, false],
        ['two', true, false],
        ['three', true, false],
      ],
      goesOn: true,
    });
  });

  it('begins anew where all of it came from dead attempts', async () => {
    expect(await restore(logOf(true))).toEqual({ said: [], goesOn: false });
  });

  it('simply goes on where no dead attempt has touched it', async () => {
    expect(await restore(logOf(false, [update('one', true)]))).toEqual({ said: [], goesOn: true });
  });

  it('asks to be restored before the first chunk of a new attempt that is added to it, and no other', () => {
    const said = (append: boolean, attempt = 2) => {
      const output = new TurnOutput(claimedRun({ attempt, artifactsAreWhole: false }), () => undefined);
      const chunk = { $case: 'artifactUpdate' as const, value: update('x', append) };
      return [output.entries(chunk)[0]?.restores, output.entries(chunk)[0]?.restores];
    };
    expect(said(true)).toEqual(['a', undefined]);
    expect(said(false)).toEqual([undefined, undefined]);
    expect(said(true, 1)).toEqual([undefined, undefined]);
  });
});

describe('a task that its agent was given in part', () => {
  it('is not cut by an agent that returns it with its additions', () => {
    const { snapshot } = claimedRun();
    const given = {
      ...snapshot.task,
      artifacts: [artifact('a', 'one')],
      metadata: { 'baton.truncated': {} },
    };
    const run = claimedRun({ snapshot: { ...snapshot, task: given }, artifactsAtStart: given.artifacts });
    const metadata: object[] = [];
    const output = new TurnOutput(run, (added) => metadata.push(added));
    const back = {
      ...given,
      artifacts: [artifact('a', 'one', 'more')],
      metadata: { ...given.metadata, own: 1 },
    };
    const [entry] = output.entries({ $case: 'task', value: back });
    expect(entry?.payload.value).toMatchObject({
      append: true,
      artifact: { parts: artifact('a', 'more').parts },
    });
    expect(output.entries({ $case: 'task', value: given })).toEqual([]);
    expect(metadata).toEqual([{ own: 1 }, {}]);
  });
});
