import { StreamResponse, TaskState, V0_3_CODEC } from '@baton/a2a';
import type { AgentOutput } from '@baton/agents';
import { TurnFailure } from '../core/turn-failure.js';
import { claimedRun } from './claimed-run.fixture.js';
import { TurnOutput } from './turn-output.js';

type Json = Record<string, unknown>;

/** Members that a reader requires, by the name of what has them: `REQUIRED` in a2a.proto, and `required` in a2a.json of 0.3. */
const REQUIRED: Record<'1.0' | '0.3', Record<string, string[]>> = {
  '1.0': {
    task: ['id', 'status'],
    statusUpdate: ['taskId', 'contextId', 'status'],
    artifactUpdate: ['taskId', 'contextId', 'artifact'],
    status: ['state'],
    artifact: ['artifactId', 'parts'],
    message: ['messageId', 'role', 'parts'],
  },
  '0.3': {
    task: ['id', 'contextId', 'kind', 'status'],
    statusUpdate: ['taskId', 'contextId', 'kind', 'status', 'final'],
    artifactUpdate: ['taskId', 'contextId', 'kind', 'artifact'],
    status: ['state'],
    artifact: ['artifactId', 'parts'],
    message: ['messageId', 'kind', 'role', 'parts'],
  },
};
const CONTENTS = { '1.0': ['text', 'raw', 'url', 'data'], '0.3': ['text', 'file', 'data'] };

/** What a reader that checks the members finds missing. Java's refuses lists of parts that are empty, too. */
function missing(version: '1.0' | '0.3', what: string, json: Json | undefined): string[] {
  if (json === undefined) return [];
  const faults = (REQUIRED[version][what] ?? [])
    .filter((member) => json[member] === undefined || json[member] === '')
    .map((member) => `${what}.${member}`);
  const parts = json.parts as Json[] | undefined;
  if (parts?.length === 0) faults.push(`${what}.parts is empty`);
  for (const part of parts ?? []) {
    const contents = CONTENTS[version].filter((member) => member in part);
    if (contents.length !== 1) faults.push(`${what}.parts has a part of ${contents.join() || 'nothing'}`);
  }
  const inside = ['status', 'artifact', 'message'].flatMap((name) =>
    missing(version, name, json[name] as Json | undefined),
  );
  return [...faults, ...inside];
}

/** What the turn makes of an output: its events as 1.0 writes them. Each is checked as readers of both versions do. */
function eventsOf(event: Json): Json[] {
  const { payload } = StreamResponse.fromJSON(event);
  const entries = new TurnOutput(claimedRun(), () => undefined).entries(payload as AgentOutput);
  return entries.map((entry, i) => {
    const json = StreamResponse.toJSON({ payload: entry.payload }) as Record<string, Json>;
    const [[name, value]] = Object.entries(json) as [[string, Json]];
    expect(missing('1.0', name, value)).toEqual([]);
    const flat = V0_3_CODEC.encodeItem({ sequence: i + 1, payload: entry.payload }) as Json;
    expect(missing('0.3', name, flat)).toEqual([]);
    return json;
  });
}

const TEXT = { text: 'x' };
const STATE = 'TASK_STATE_WORKING';
const ids = { taskId: 't', contextId: 'c' };
const said = (message: Json) => ({ statusUpdate: { ...ids, status: { state: STATE, message } } });
const chunk = (artifact: Json, more: Json = {}) => ({ artifactUpdate: { ...ids, artifact, ...more } });

describe('an output of an agent that lacks a member', () => {
  it.each([
    // A stream of chunks often ends with one that only says so.
    [
      'an artifact without parts as the last chunk',
      chunk({ artifactId: 'a' }, { append: true, lastChunk: true }),
      { artifactUpdate: { lastChunk: true, artifact: { artifactId: 'a', parts: [{ text: '' }] } } },
    ],
    [
      'an artifact without parts that begins',
      chunk({ artifactId: 'a', name: 'report', metadata: { m: 1 } }),
      {
        artifactUpdate: {
          artifact: { artifactId: 'a', name: 'report', metadata: { m: 1 }, parts: [{ text: '' }] },
        },
      },
    ],
    [
      'a task with an artifact without parts',
      { task: { id: 't', artifacts: [{ artifactId: 'a' }] } },
      { artifactUpdate: { artifact: { parts: [{ text: '' }] } } },
    ],
    ['a message without an id', said({ role: 'ROLE_AGENT', parts: [TEXT] }), {}],
    ['a message without a role', said({ messageId: 'm', parts: [TEXT] }), {}],
    ['a message of the user', said({ messageId: 'm', role: 'ROLE_USER', parts: [TEXT] }), {}],
    [
      'a message without parts, but with metadata',
      said({ messageId: 'm', metadata: { m: 1 } }),
      { statusUpdate: { status: { message: { metadata: { m: 1 }, parts: [{ text: '' }] } } } },
    ],
    [
      'a reply without anything',
      { message: {} },
      { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED', message: { parts: [{ text: '' }] } } } },
    ],
    ['a task without ids', { task: { status: { state: STATE, message: { parts: [TEXT] } } } }, {}],
    [
      'a status without ids and time',
      { statusUpdate: { status: { state: STATE } } },
      { statusUpdate: { taskId: 'task' } },
    ],
    ['an empty text', chunk({ artifactId: 'a', parts: [{ text: '' }] }), {}],
    ['a file without a name and type', chunk({ artifactId: 'a', parts: [{ raw: 'AA==' }] }), {}],
  ])('is completed: %s', (_what, event, expected) => {
    const events = eventsOf(event);
    expect(events).toMatchObject([expected]);
    expect(JSON.stringify(events)).not.toContain('ROLE_USER');
  });

  it('is left out: a status message without content', () => {
    const [event] = eventsOf(said({ messageId: 'm', role: 'ROLE_AGENT' }));
    expect(event).toMatchObject({ statusUpdate: { status: { state: STATE } } });
    expect(event).not.toHaveProperty('statusUpdate.status.message');
  });

  it.each([
    ['status.state', { statusUpdate: { ...ids, status: {} } }],
    ['status.state', { statusUpdate: ids }],
    ['status.state', { statusUpdate: { ...ids, status: { state: 'TASK_STATE_BUSY' } } }],
    ['artifactId', chunk({ parts: [TEXT] })],
    ['artifactId', { artifactUpdate: ids }],
    ['artifactId', { task: { id: 't', artifacts: [{ parts: [TEXT] }] } }],
    ['the artifact "a" whose parts[1] has no content', chunk({ artifactId: 'a', parts: [TEXT, {}] })],
    // As 0.3 writes it.
    [
      'parts[0] has no content',
      chunk({ artifactId: 'a', parts: [{ kind: 'file', file: { bytes: 'AA==' } }] }),
    ],
    ['a message whose parts[0] has no content', said({ messageId: 'm', parts: [{ metadata: { m: 1 } }] })],
    ['a message whose parts[0] has no content', { message: { parts: [{}] } }],
  ])('fails the turn, and the reason names %s', (member, event) => {
    const output = (): unknown => eventsOf(event);
    expect(output).toThrow(TurnFailure);
    expect(output).toThrow(member);
  });

  it('ends a turn as a whole one does', () => {
    const { payload } = StreamResponse.fromJSON({ message: {} });
    const [entry] = new TurnOutput(claimedRun(), () => undefined).entries(payload as AgentOutput);
    expect(entry?.end).toEqual({ state: TaskState.TASK_STATE_COMPLETED, outcome: 'message' });
  });
});
