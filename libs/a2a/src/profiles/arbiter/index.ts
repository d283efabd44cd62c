/**
 * `arbiter`: Arbiter. 0.3 names and shapes in Arbiter's own vocabulary: the reply is one text artifact and a
 * final message, everything else an agent says is an artifact marked `x-arbiter.*`; text in, text out. Its
 * version header is 1.0, whose method names work too, and is judged before the body is looked at.
 */
import { checkFirst, defineCodec, type Family, type ReadParams } from '../../codecs/define-codec.js';
import type { Fields } from '../../codecs/fields.js';
import { V0_3_FAMILY } from '../../codecs/v0_3/index.js';
import { V1_0_FAMILY } from '../../codecs/v1_0/index.js';
import { type PartRule, refuseKind } from '../part-rule.js';
import { defineProfile } from '../profile.js';
import { encodeArbiterCard } from './card.js';
import { ARBITER_SHAPE } from './shape.js';

const PARTS: PartRule = { always: ['text'], refusal: 'content-type-not-supported' };

const PATH = '/v1/a2a/agents/:agent';

const speak = (family: Family) =>
  defineCodec({
    ...family,
    methods: new Map([...checkFirst(family.methods, assertTextKinds)].map(withoutPush)),
    shape: ARBITER_SHAPE,
    framing: { event: 'message', enveloped: true, errorEvent: 'message' },
  });

export const ARBITER_PROFILE = defineProfile({
  name: 'arbiter',
  paths: [PATH],
  codecs: [speak(V0_3_FAMILY), speak(V1_0_FAMILY)],
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
  rules: { reply: 'task', subscribe: 'replay' },
  card: { path: `${PATH}/agent-card.json`, encode: encodeArbiterCard },
});

/** Push is refused whatever the params are. */
function withoutPush([method, read]: [string, ReadParams]): [string, ReadParams] {
  const isPush = /PushNotificationConfig/i.test(method);
  return [method, isPush ? () => ({ operation: 'pushNotificationConfig', request: { taskId: '' } }) : read];
}

/** A part that calls itself anything but text is refused for that, whatever else may be wrong with it. */
function assertTextKinds(params: Fields): void {
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
