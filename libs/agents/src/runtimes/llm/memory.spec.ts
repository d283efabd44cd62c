import { EVENT_KIND, Role, type Task, TaskState } from '@baton/a2a';
import { jsonPart, plainTextPart } from '../../agent-runtime.js';
import { firstTurn, userMessage } from '../../../../../test/support/agents/turns.js';
import { llmConfig } from './llm-config.js';
import { memoryOf } from './memory.js';

const artifact = (artifactId: string, parts: Task['artifacts'][number]['parts'], kind?: string) => ({
  artifactId,
  parts,
  name: '',
  description: '',
  extensions: [],
  metadata: kind === undefined ? undefined : { [EVENT_KIND]: kind },
});

const task = (asked: string, artifacts: Task['artifacts'], said?: string): Task => ({
  id: asked,
  contextId: 'context-1',
  status: {
    state: said ? TaskState.TASK_STATE_FAILED : TaskState.TASK_STATE_COMPLETED,
    message: said === undefined ? undefined : userMessage(said, { role: Role.ROLE_AGENT }),
    timestamp: undefined,
  },
  history: [userMessage(asked)],
  artifacts,
  metadata: undefined,
});

const TASKS = [
  task('first', [artifact('a', [plainTextPart('one '), plainTextPart('two')])]),
  task('second', [
    artifact('r', [plainTextPart('hm')], 'reasoning'),
    artifact('c', [jsonPart({ tool: 'x' })], 'tool-call'),
    artifact('o', [jsonPart({ n: 1 })]),
  ]),
  task('third', [], 'it failed'),
];

const memory = (value: unknown, tasks = TASKS) => {
  const turn = firstTurn('now', { earlierTasks: (most) => Promise.resolve(tasks.slice(-(most ?? 16))) });
  return memoryOf(turn, llmConfig({ model: 'openai/m', memory: value }).memory);
};

describe('the memory of a context', () => {
  it('is the messages and answers of its earlier tasks, without tool calls and reasoning', async () => {
    expect(await memory({})).toEqual([
      { role: 'user', content: 'first' },
      { role: 'assistant', content: 'one two' },
      { role: 'user', content: 'second' },
      { role: 'assistant', content: '{"n":1}' },
      { role: 'user', content: 'third' },
    ]);
  });

  it('has no blank message, and begins with the user', async () => {
    const blank = [plainTextPart(' \n')];
    const tasks = [
      task('  ', []),
      task(' ', [artifact('a', [plainTextPart('one')])]),
      task('q', [artifact('a', blank)]),
    ];
    expect(await memory({}, tasks)).toEqual([
      { role: 'user', content: '(an empty message)' },
      { role: 'assistant', content: 'one' },
      { role: 'user', content: 'q' },
    ]);
  });

  it('goes back as many turns as the agent sets', async () => {
    expect(await memory({ turns: 1 })).toEqual([{ role: 'user', content: 'third' }]);
  });

  it('goes back as many tokens as the agent sets, and drops whole turns only', async () => {
    const [, ...later] = await memory({ tokens: 10 });
    expect(later.map(({ content }) => content)).not.toContain('first');
    expect(await memory({ tokens: 1 })).toEqual([]);
  });

  it('can be off', async () => {
    expect(await memory('off')).toEqual([]);
  });

  it('names files', async () => {
    const file = {
      content: { $case: 'raw' as const, value: Buffer.from('x') },
      metadata: undefined,
      filename: 'plan.pdf',
      mediaType: 'application/pdf',
    };
    const [answer] = (await memory({}, [task('q', [artifact('f', [file])])])).slice(1);
    expect(answer?.content).toBe('(a file, plan.pdf, application/pdf)');
  });
});
