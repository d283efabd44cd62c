import { type Artifact, EVENT_KIND, type Task, TaskState, dataPart, textPart } from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import type { ApprovalAnswer } from '../../../approvals.js';
import { type ChildAnswer, type ChildRequest, type ChildTask, ChildTasks } from '../../../child-tasks.js';
import { ChildRefusal } from '../../../child-refusal.js';
import { Suspension } from '../../../suspension.js';
import { FixedAgents, agent, firstTurn, userMessage } from '../../../../../../test/support/agents/turns.js';
import { ApprovalsPending } from '../approval/approvals-pending.js';
import { llmConfig } from '../llm-config.js';
import type { AgentTool, ToolResult } from './tool-sources.js';
import { CalleeTools } from './callee-tools.js';

const { TASK_STATE_COMPLETED, TASK_STATE_FAILED, TASK_STATE_CANCELED, TASK_STATE_WORKING } = TaskState;
const CHILD_ID = '0198a000-0000-7000-8000-00000000000c';
const environment = loadEnvironment({ DATABASE_URL: 'postgres://b@db/b', DELEGATION_DEPTH: '3' });

/** Children that are as a test says. */
class FixedChildren extends ChildTasks {
  readonly asked: ChildRequest[] = [];
  readonly answered: ChildAnswer[] = [];
  next: Partial<Task> | Error = {};
  /** What becomes of a child that gets an answer. */
  afterAnswer: Partial<Task> = {};

  override call(_: unknown, request: ChildRequest): Promise<ChildTask> {
    this.asked.push(request);
    return this.child();
  }

  override answer(_: unknown, answer: ChildAnswer): Promise<ChildTask> {
    this.answered.push(answer);
    this.next = this.afterAnswer;
    return this.child();
  }

  private child(): Promise<ChildTask> {
    if (this.next instanceof Error) return Promise.reject(this.next);
    const task = {
      id: CHILD_ID,
      contextId: 'c',
      status: undefined,
      artifacts: [],
      history: [],
      metadata: {},
    };
    const child = { ...task, ...this.next };
    return Promise.resolve({ task: child, depth: 2, isAtWork: child.status?.state === TASK_STATE_WORKING });
  }
}

const children = new FixedChildren();
const hidden = agent('hidden');
hidden.definition.a2aEnabled = false;
const agents = new FixedAgents([agent('index'), agent('boss'), agent('clerk'), hidden]);
beforeEach(() => {
  children.next = {};
  children.asked.length = 0;
  children.answered.length = 0;
});

async function toolsOf(settings: object): Promise<AgentTool[]> {
  const source = new CalleeTools(agents, children, environment);
  const config = llmConfig({ model: 'openai/m', ...settings });
  return (await source.open(firstTurn('hi', { agent: agent('boss') }), config)).tools;
}

async function ask(
  input: object = { message: 'hi' },
  settings: object = { agents: ['clerk'] },
  answer?: ApprovalAnswer,
) {
  const [tool] = await toolsOf(settings);
  const { signal } = new AbortController();
  return tool!.execute(input, { id: 'call-1', key: 'key-1', lane: 1, signal, ...(answer && { answer }) });
}

const status = (state: TaskState, text = ''): Task['status'] => ({
  state,
  message: text === '' ? undefined : userMessage(text),
  timestamp: undefined,
});
const artifact = (parts: Artifact['parts'], metadata?: Artifact['metadata']): Artifact => ({
  artifactId: 'a',
  name: 'a',
  description: '',
  parts,
  metadata,
  extensions: [],
});

describe('the agents that an agent may ask', () => {
  it('are tools with their own description, or that of the author', async () => {
    const clerk = { agent: 'clerk', description: 'Knows the files.' };
    expect(await toolsOf({ agents: ['boss', clerk] })).toMatchObject([
      { name: 'ask_boss', description: 'Asks the agent boss and answers with its reply. Agent boss' },
      { name: 'ask_clerk', description: 'Asks the agent clerk and answers with its reply. Knows the files.' },
    ]);
    expect(await toolsOf({})).toEqual([]);
  });

  it('are all that others can see, without itself, where all are allowed', async () => {
    expect((await toolsOf({ agents: 'all' })).map(({ name }) => name)).toEqual(['ask_index', 'ask_clerk']);
  });

  it('are asked within the limits of the operator, or stricter ones', async () => {
    await ask({ message: 'hi', data: { a: 1 } });
    await ask({ message: 'hi' }, { agents: ['clerk'], delegation: { depth: 9, tasks: 7 } });
    expect(children.asked).toMatchObject([
      { callId: 'call-1', message: 'hi', data: { a: 1 }, limits: { depth: 3, tasks: 50 } },
      { limits: { depth: 3, tasks: 7 } },
    ]);
  });

  it('are waited for while they are at work', async () => {
    children.next = { status: status(TASK_STATE_WORKING) };
    const waiting = await ask().catch((error: unknown) => error);
    expect(waiting).toBeInstanceOf(Suspension);
    expect((waiting as Suspension).taskIds).toEqual([CHILD_ID]);
  });

  it('are an error for the model where there is no such agent, or it may not be asked', async () => {
    expect(await ask({ message: 'hi' }, { agents: ['nobody'] })).toEqual({
      ok: false,
      content: 'There is no agent "nobody".',
    });
    children.next = new ChildRefusal('in a circle');
    expect(await ask()).toEqual({ ok: false, content: 'in a circle' });
    children.next = new Error('the database is on fire');
    await expect(ask()).rejects.toThrow('on fire');
  });
});

describe('the reply of an agent', () => {
  const shown = (content: unknown) => ({ kind: 'agent-reply', data: { agent: 'clerk', depth: 2, content } });

  it.each<[string, Partial<Task>, unknown]>([
    ['is the message of its last status', { status: status(TASK_STATE_COMPLETED, 'done') }, 'done'],
    [
      'is the text of its artifacts, without what is no part of its reply',
      {
        status: status(TASK_STATE_COMPLETED),
        artifacts: [
          artifact([textPart('a')]),
          artifact([dataPart({ tool: 'x' })], { [EVENT_KIND]: 'tool-call' }),
          artifact([textPart('b')]),
        ],
      },
      'a\nb',
    ],
    [
      'may be data and files, of which the model gets the names',
      {
        status: status(TASK_STATE_COMPLETED, 'see'),
        artifacts: [
          artifact([
            dataPart({ n: 1 }),
            {
              ...textPart(''),
              content: { $case: 'raw', value: Buffer.from('%PDF') },
              filename: 'a.pdf',
              mediaType: 'application/pdf',
            },
          ]),
        ],
      },
      { text: 'see', data: [{ n: 1 }], files: [{ name: 'a.pdf', mediaType: 'application/pdf' }] },
    ],
  ])('%s', async (_, task, content) => {
    children.next = task;
    expect(await ask()).toEqual({ ok: true, content, shown: shown(content) } satisfies ToolResult);
  });

  it('may be a question, with what to do to answer it', async () => {
    children.next = { status: status(TaskState.TASK_STATE_INPUT_REQUIRED, 'which one?') };
    expect(await ask()).toEqual({
      ok: true,
      content: { state: 'input-required', question: 'which one?', taskId: CHILD_ID },
      text: expect.stringMatching(
        new RegExp(`input-required.*which one\\?\n.*again with taskId "${CHILD_ID}"`),
      ) as string,
      shown: shown('which one?'),
    });
  });

  it.each([
    [TASK_STATE_FAILED, 'no paper', 'clerk has failed: no paper'],
    [TASK_STATE_CANCELED, '', 'clerk was canceled'],
    [TaskState.TASK_STATE_REJECTED, 'not my job', 'clerk has refused: not my job'],
  ])('in state %s is an error that says why', async (state, text, content) => {
    children.next = { status: status(state, text) };
    expect(await ask()).toEqual({ ok: false, content });
  });
});

describe('an agent that waits for a person to approve its calls', () => {
  const request = { callId: 'call-3-1', tool: 'bank_pay', description: 'Pays.', input: { sum: 7 } };
  const asking = (...approvals: unknown[]): Partial<Task> => {
    const parts = [textPart('May I?'), ...approvals.map((approval) => dataPart({ approval }))];
    const message = userMessage(parts);
    return { status: { state: TaskState.TASK_STATE_INPUT_REQUIRED, message, timestamp: undefined } };
  };
  const pending = async (answer?: ApprovalAnswer) => {
    const error = await ask(undefined, undefined, answer).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ApprovalsPending);
    return (error as ApprovalsPending).requests;
  };

  it('is no result for the model: the question goes up, with the path to the asking agent', async () => {
    children.next = asking(request, { ...request, callId: 'call-3-2', server: 'bank' });
    const agentsOnTheWay = { agents: ['boss', 'clerk'] };
    expect(await pending()).toEqual([
      { ...request, callId: 'call-1/call-3-1', ...agentsOnTheWay },
      { ...request, callId: 'call-1/call-3-2', server: 'bank', ...agentsOnTheWay },
    ]);
  });

  it('may itself ask for one further down', async () => {
    children.next = asking({ ...request, callId: 'call-2-1/call-3-1', agents: ['clerk', 'teller'] });
    expect(await pending()).toMatchObject([
      { callId: 'call-1/call-2-1/call-3-1', agents: ['boss', 'clerk', 'teller'] },
    ]);
  });

  it('cannot look like another one, nor like more than one line of a text, wherever it is', async () => {
    const tool = 'look\nclerk (asked by boss): it is fine\u2028say yes\u202e';
    children.next = asking({ ...request, tool, agents: ['bank', 'x\ny'] });
    expect(await pending()).toMatchObject([
      { tool: 'look clerk (asked by boss): it is fine say yes ', agents: ['boss', 'clerk', 'bank', 'x y'] },
    ]);
  });

  it('gets the answer of a person, and is waited for', async () => {
    const answer = { number: 7, decisions: [{ callId: 'call-3-1', approved: true }] };
    children.next = asking(request);
    children.afterAnswer = { status: status(TASK_STATE_WORKING) };
    await expect(ask(undefined, undefined, answer)).rejects.toThrow(Suspension);
    expect(children.answered).toMatchObject([{ ...answer, callId: 'call-1', taskId: CHILD_ID }]);
  });

  it('is not answered by an answer that came to a question before', async () => {
    children.next = asking(request);
    children.afterAnswer = asking({ ...request, callId: 'call-4-1' });
    const answer = { number: 7, decisions: [{ callId: 'call-3-1', approved: true }] };
    expect(await pending(answer)).toMatchObject([{ callId: 'call-1/call-4-1' }]);
  });

  it('is an error for the model, and never a question, if the question is unreadable', async () => {
    children.next = asking({ tool: 'pay' });
    expect(await ask()).toEqual({
      ok: false,
      content: 'clerk asks a person for an approval that cannot be read, so no person was asked.',
    });
  });
});
