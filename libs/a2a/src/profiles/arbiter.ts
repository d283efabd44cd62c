/**
 * `arbiter`: Arbiter. 0.3 names and shapes in Arbiter's own vocabulary: the reply is one text artifact and a final message,
 * all other output is an artifact marked `x-arbiter.*`; text in, text out. Its version header is 1.0, whose method
 * names work too, and is checked before the body is read.
 */
import type { Agent } from '../agent.js';
import { buildForeignCard } from '../cards/agent-card.js';
import { type WireVersion, defineCodec } from '../codecs/codec.js';
import type { Fields } from '../codecs/fields.js';
import { V0_3 } from '../codecs/v0_3.js';
import { V1_0 } from '../codecs/v1_0.js';
import { isPush, type OperationName, type PushOperationName } from '../operation.js';
import { ARBITER_SHAPE } from './arbiter-shape.js';
import { defineProfile, type KindRule, refuseKind } from './profile.js';

const PARTS: KindRule = { always: ['text'], refusal: 'content-type-not-supported' };

const PATH = '/v1/a2a/agents/:agent';

const speak = (wire: WireVersion) =>
  defineCodec({
    ...wire,
    operations: { ...wire.operations, ...pushWithoutParams(wire) },
    checkParams: assertTextKinds,
    shape: ARBITER_SHAPE,
    framing: { event: 'message', enveloped: true, errorEvent: 'message' },
  });

export const ARBITER_PROFILE = defineProfile({
  name: 'arbiter',
  paths: [PATH],
  codecs: [speak(V0_3), speak(V1_0)],
  versions: ['1.0'],
  spellings: ['1', '1.0'],
  versionCheck: 'before-body',
  errors: {
    'agent-not-found': { http: 200 },
    'version-not-supported': {
      code: -32007,
      data: (_error, { metadata, ...info }) => ({ ...info, metadata: { ...metadata, a2aCode: '-32009' } }),
    },
    'push-not-supported': {
      code: -32004,
      reason: 'UNSUPPORTED_OPERATION',
      message: () => 'Push notifications are not supported: follow the task with tasks/resubscribe',
    },
  },
  parts: PARTS,
  rules: { reply: 'task', subscribe: 'replay', push: 'refused' },
  card: { path: `${PATH}/agent-card.json`, encode: encodeArbiterCard },
});

/** Push is refused whatever the params are. */
function pushWithoutParams({ operations }: WireVersion): Pick<WireVersion['operations'], PushOperationName> {
  const {
    createTaskPushNotificationConfig: create,
    getTaskPushNotificationConfig: get,
    listTaskPushNotificationConfigs: list,
    deleteTaskPushNotificationConfig: remove,
  } = operations;
  const none = { tenant: '', taskId: '', id: '', url: '', token: '', authentication: undefined };
  return {
    createTaskPushNotificationConfig: { ...create, methods: allReading(create, none) },
    getTaskPushNotificationConfig: { ...get, methods: allReading(get, none) },
    listTaskPushNotificationConfigs: {
      ...list,
      methods: allReading(list, { tenant: '', taskId: '', pageSize: 0, pageToken: '' }),
    },
    deleteTaskPushNotificationConfig: { ...remove, methods: allReading(remove, none) },
  };
}

function allReading<Request>({ methods }: { methods: object }, request: Request) {
  return Object.fromEntries(Object.keys(methods).map((name) => [name, () => request]));
}

/** A part that calls itself anything but text is refused for that, whatever else may be wrong with it. */
function assertTextKinds(params: Fields, operation: OperationName): void {
  if (isPush(operation)) return;
  const parts = params.child('message')?.get('parts');
  if (!Array.isArray(parts)) return;
  parts.forEach((part: unknown, index) => {
    if (typeof part !== 'object' || part === null) return;
    const { kind, type } = part as Record<string, unknown>;
    const named = kind ?? type ?? 'text';
    if (typeof named !== 'string' || named === 'text') return;
    throw refuseKind(PARTS, named, `message.parts[${index}]`);
  });
}

const CHAT = { id: 'chat', name: 'Chat', description: 'Answers messages of text.', tags: ['chat'] };

/** The card of an agent as Arbiter's clients read it: 0.3, text in, text and JSON out. */
export function encodeArbiterCard(agent: Agent, publicUrl: string): Record<string, unknown> {
  const url = `${publicUrl.replace(/\/+$/, '')}/v1/a2a/agents/${encodeURIComponent(agent.id)}`;
  const card = buildForeignCard(agent, publicUrl, url, 'off');
  const skills = (card.skills as { id: string }[]).filter(({ id }) => id !== CHAT.id);
  return {
    ...card,
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: [CHAT, ...skills],
  };
}
