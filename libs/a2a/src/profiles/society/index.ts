/**
 * `society`: Society, at the root. One method of 0.1, `tasks/send`, whose id names a thread: each send is the
 * thread's next turn. A client gives up after 30 s, so the answer is then the task as it is.
 */
import { defineCodec } from '../../codecs/define-codec.js';
import { METHODS, SEND } from '../../codecs/v0_1/decode.js';
import { v0_1Family } from '../../codecs/v0_1/index.js';
import { turnArtifacts } from '../../turn-of-alias.js';
import { ROOT_ERRORS } from '../root-errors.js';
import { defineProfile } from '../profile.js';
import { encodeRootCard } from './root-card.js';
import { writeTask } from './write-task.js';

const FAMILY = v0_1Family(writeTask);

const CODEC = defineCodec({
  ...FAMILY,
  methods: new Map([...METHODS].filter(([method]) => method === SEND)),
  results: {
    ...FAMILY.results,
    sendMessage: (result, context) =>
      result.$case === 'task'
        ? writeTask(
            { ...result.value, artifacts: turnArtifacts(result.value.artifacts, result.priorArtifacts) },
            context,
          )
        : FAMILY.results.sendMessage(result, context),
  },
});

export const SOCIETY_PROFILE = defineProfile({
  name: 'society',
  paths: ['/'],
  codecs: [CODEC],
  versions: ['0.1', '0.3', '1.0'],
  errors: ROOT_ERRORS,
  bodyLimit: 'small',
  parts: { always: ['text'], refusal: 'invalid-params' },
  rules: {
    reply: 'task',
    wait: 'limited',
    clientTaskIds: { joins: 'working-task', canceled: 'new-turn' },
  },
  card: { path: '/.well-known/agent.json', encode: encodeRootCard },
});
