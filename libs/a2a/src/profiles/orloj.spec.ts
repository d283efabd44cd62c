import type { Agent } from '../agent.js';
import { ProtocolError } from '../protocol-error.js';
import { type Part, TaskState } from '../model.js';
import { frameRecord } from '../codecs/codec.js';
import {
  artifactEvent,
  sampleArtifact,
  statusEvent,
  textPart,
} from '../../../../test/support/a2a/samples.js';
import {
  decode,
  errorOf,
  framesOf,
  opening,
  replyMessage,
  resultOf,
  taskIn,
  wireOf,
} from '../../../../test/support/a2a/profile.js';
import { rulesFor, soleAgent } from './profile.js';
import { ORLOJ_PROFILE as orloj } from './orloj.js';

const COMPLETED = TaskState.TASK_STATE_COMPLETED;
const message = { role: 'user', parts: [{ type: 'text', text: 'Summarize this document' }] };
const send = (members: object = {}, method = 'tasks/send') =>
  decode(orloj, method, { id: 'task-001', message, ...members });
const refused = (act: () => unknown) => wireOf(orloj, errorOf(act));
const choose = (params: object, method = 'tasks/send', path?: string) =>
  orloj.chooseAgent({ path, params, call: decode(orloj, method, { id: 'task-001', message, ...params }) });
const agent = (slug: string, a2aEnabled?: boolean) =>
  ({ id: slug, slug, definition: { a2aEnabled } }) as Agent;
const user = { role: 'user', parts: [{ type: 'text', text: 'hi' }] };

describe('orloj: which agent', () => {
  it('O-1 is the one in the path, with any metadata', () => {
    const choice = { by: 'name', name: 'writer' };
    expect(choose({ metadata: { agent: 'other' } }, 'tasks/send', 'writer')).toEqual(choice);
    expect(choose({}, 'tasks/get', 'writer')).toEqual(choice);
  });

  it('O-1 is metadata.agent, then metadata.target', () => {
    expect(choose({ metadata: { agent: 'a', target: 'b' } })).toEqual({ by: 'name', name: 'a' });
    expect(choose({ metadata: { target: 'b' } })).toEqual({ by: 'name', name: 'b' });
    expect(choose({ metadata: { agent: '', target: 'b' } })).toEqual({ by: 'name', name: 'b' });
  });

  it('O-1 is else the sole one; get and cancel need only the id', () => {
    expect(choose({ metadata: { source: 'x' } })).toEqual({ by: 'sole' });
    for (const method of ['tasks/get', 'tasks/cancel']) {
      expect(choose({}, method)).toEqual({ by: 'task', taskId: 'task-001' });
    }
    const reply = { message: { ...message, messageId: 'm', taskId: 't-1' } };
    expect(choose(reply, 'message/send')).toEqual({ by: 'task', taskId: 't-1' });
    expect(orloj.rules.taskScope).toBe('tenant');
  });

  it('O-1 refuses an agent that is not named by a string', () => {
    const params = { message: { ...message, messageId: 'm' }, metadata: { agent: 7 } };
    expect(refused(() => choose(params, 'message/send'))).toMatchObject({ code: -32602 });
  });

  it('O-1 the sole agent is the tenant’s only enabled one, or else its default agent', () => {
    const [a, b, off] = [agent('a'), agent('b', true), agent('off', false)];
    expect(soleAgent([a, off], b)).toBe(a);
    expect(soleAgent([off], b)).toBe(b);
    expect(soleAgent([], b)).toBe(b);
    for (const [own, fallback] of [
      [[a, b], a],
      [[], undefined],
      [[off], off],
    ] as const) {
      expect(refused(() => soleAgent(own, fallback))).toMatchObject({ code: -32602 });
    }
  });

  it('O-13 an agent that is unknown or not enabled is -32003', () => {
    expect(wireOf(orloj, new ProtocolError('agent-not-found', 'x'))).toMatchObject({
      code: -32003,
      http: 200,
    });
    expect(orloj.onlyEnabledAgents).toBe(true);
  });
});

describe('orloj: requests', () => {
  it('O-2 takes notifications', () => {
    expect(orloj.absentId).toBe('notification');
  });

  it('O-3 a send names its task by the caller’s id', () => {
    expect(send({ metadata: { source: 'w' }, sessionId: 's-1' })).toMatchObject({
      operation: 'sendMessage',
      clientTaskId: 'task-001',
      request: {
        message: { messageId: '', taskId: '', contextId: 's-1' },
        configuration: { returnImmediately: false },
        metadata: { source: 'w' },
      },
    });
    expect(send({}, 'tasks/sendSubscribe').operation).toBe('sendStreamingMessage');
  });

  it.each([{ id: undefined }, { id: '' }, { id: 7 }, { message: undefined }, { message: 'x' }])(
    'O-4 refuses %j with -32602',
    (members) => {
      for (const method of ['tasks/send', 'tasks/sendSubscribe']) {
        expect(refused(() => send(members, method))).toMatchObject({ code: -32602 });
      }
    },
  );

  it.each([{ a: 1 }, { a: { b: 'c' } }, { a: true }, []])('O-5 refuses the metadata %j', (metadata) => {
    expect(refused(() => send({ metadata }))).toMatchObject({ code: -32602 });
  });

  it('O-5 refuses metadata in no other family', () => {
    const params = { message: { ...message, messageId: 'm' }, metadata: { a: 1 } };
    expect(decode(orloj, 'message/send', params).request).toMatchObject({ metadata: { a: 1 } });
  });

  it('O-9 keeps the reason of a cancel, up to 1024 bytes', () => {
    const cancel = (reason: unknown) => decode(orloj, 'tasks/cancel', { id: 'x', reason });
    expect(cancel('é'.repeat(512)).request).toMatchObject({ id: 'x', metadata: { reason: 'é'.repeat(512) } });
    expect(cancel(undefined).request).toMatchObject({ metadata: undefined });
    for (const reason of ['é'.repeat(512) + 'x', 7]) {
      expect(refused(() => cancel(reason))).toMatchObject({ code: -32602 });
    }
    expect(orloj.rules).toMatchObject({ cancelMetadata: 'kept', cancelAgain: 'returns-it' });
  });

  it('O-8 joins, answers and continues', () => {
    expect(orloj.rules.clientTaskIds).toEqual({ joins: 'any-task', canceled: 'refused' });
    expect(rulesFor(orloj, orloj.codecFor('tasks/send')!).history).toBe('conversation');
    expect(rulesFor(orloj, orloj.codecFor('message/send')!).history).toBe('task');
  });
});

describe('orloj: answers', () => {
  it('O-5 O-6 O-7 are the bare task', () => {
    const artifacts = [
      sampleArtifact({ name: 'summary', description: 'short', parts: [textPart('a'), textPart('b')] }),
      sampleArtifact({
        artifactId: 'a-2',
        parts: [{ ...textPart(''), content: { $case: 'data', value: [1] } }],
      }),
    ];
    const metadata = { source: 'external-workflow', n: 7, o: { p: [] } };
    expect(resultOf(orloj, 'tasks/send', taskIn(COMPLETED, { artifacts, metadata }))).toEqual({
      id: 'task-1',
      status: { state: 'completed', message: { role: 'agent', parts: [{ type: 'text', text: 'ab' }] } },
      artifacts: [
        { name: 'summary', description: 'short', parts: [{ type: 'text', text: 'ab' }], index: 0 },
        { name: 'a-2', description: '', parts: [{ type: 'data', data: [1] }], index: 1 },
      ],
      history: [user, { role: 'agent', parts: [{ type: 'text', text: 'ab' }] }],
      metadata: { source: 'external-workflow', n: '7', o: '{"p":[]}' },
    });
  });

  it('O-6 leave out what there is not', () => {
    expect(resultOf(orloj, 'tasks/get', taskIn(TaskState.TASK_STATE_WORKING, { history: [] }))).toEqual({
      id: 'task-1',
      status: { state: 'working' },
      artifacts: [],
    });
  });

  it('O-7 have files as data', () => {
    const parts: Part[] = [
      { ...textPart(''), content: { $case: 'url', value: 'https://x' }, filename: 'f', mediaType: 'a/b' },
      { ...textPart(''), content: { $case: 'raw', value: Buffer.from([0]) }, metadata: { m: 1 } },
    ];
    expect(
      resultOf(orloj, 'tasks/get', taskIn(COMPLETED, { artifacts: [sampleArtifact({ parts })] })).artifacts,
    ).toMatchObject([
      {
        parts: [
          { type: 'data', data: { url: 'https://x', filename: 'f', mediaType: 'a/b' } },
          { type: 'data', data: { raw: 'AA==' }, metadata: { m: 1 } },
        ],
      },
    ]);
  });

  it.each([
    [TaskState.TASK_STATE_SUBMITTED, 'submitted'],
    [TaskState.TASK_STATE_WORKING, 'working'],
    [TaskState.TASK_STATE_INPUT_REQUIRED, 'input-required'],
    [TaskState.TASK_STATE_AUTH_REQUIRED, 'input-required'],
    [TaskState.TASK_STATE_COMPLETED, 'completed'],
    [TaskState.TASK_STATE_FAILED, 'failed'],
    [TaskState.TASK_STATE_CANCELED, 'canceled'],
    [TaskState.TASK_STATE_REJECTED, 'rejected'],
  ])('O-12 write state %i as %s', (state, name) => {
    expect(resultOf(orloj, 'tasks/get', taskIn(state, {}, replyMessage('why'))).status).toEqual({
      state: name,
      message: { role: 'agent', parts: [{ type: 'text', text: 'why' }] },
    });
  });

  it('O-10 stream the bare full task with every status', () => {
    const chunk = (text: string, append: boolean) =>
      artifactEvent(sampleArtifact({ parts: [textPart(text)] }), append);
    const log = [
      opening(),
      statusEvent(TaskState.TASK_STATE_WORKING),
      chunk('Do', false),
      chunk('ne.', true),
      statusEvent(COMPLETED),
    ];
    const artifacts = [{ name: 'a-1', description: '', parts: [{ type: 'text', text: 'Done.' }], index: 0 }];
    const agentSays = { role: 'agent', parts: [{ type: 'text', text: 'Done.' }] };
    const frames = framesOf(orloj, 'tasks/sendSubscribe', log);
    expect(frames).toEqual([
      {
        sequence: 1,
        result: { id: 'task-1', status: { state: 'submitted' }, artifacts: [], history: [user] },
      },
      { sequence: 2, result: { id: 'task-1', status: { state: 'working' }, artifacts: [], history: [user] } },
      {
        sequence: 5,
        result: {
          id: 'task-1',
          status: { state: 'completed', message: agentSays },
          artifacts,
          history: [user, agentSays],
        },
      },
    ]);
    const { framing } = orloj.codecFor('tasks/sendSubscribe')!;
    const record = frameRecord(framing, { sequence: 2, result: { id: 'x' } }, () => 'an envelope');
    expect(record).toBe('id: 2\nevent: status\ndata: {"id":"x"}\n\n');
  });

  it('O-10 follow an interrupted task on to its end, in this family alone', () => {
    expect(rulesFor(orloj, orloj.codecFor('tasks/sendSubscribe')!).streamEnds).toBe('with-task');
    expect(rulesFor(orloj, orloj.codecFor('message/stream')!).streamEnds).toBe('with-turn');
    expect(orloj.codecFor('message/stream')!.framing).toEqual({ enveloped: true });
  });

  it('O-13 say which task there is not', () => {
    expect(wireOf(orloj, ProtocolError.taskNotFound('a2a-task-unknown'))).toEqual({
      code: -32001,
      http: 200,
      message: 'task not found',
      data: { task_id: 'a2a-task-unknown' },
    });
  });

  it('O-13 say that a task was cancelled', () => {
    expect(wireOf(orloj, new ProtocolError('task-canceled', 'x'))).toMatchObject({
      code: -32002,
      message: 'task cancelled',
    });
    expect(orloj.rules.agentThrew).toBe('failed-task');
  });
});
