/**
 * `langsmith`: LangSmith Agent Server. 0.3 as it stands, with replies always in artifacts that have a name,
 * an `Accept` header that fits the method, and no notifications.
 */
import { defineCodec } from '../../codecs/define-codec.js';
import { V0_3_FAMILY } from '../../codecs/v0_3/index.js';
import { V1_0_FAMILY } from '../../codecs/v1_0/index.js';
import { defineProfile } from '../profile.js';
import { REPLIES_AS_ARTIFACTS as shape } from './replies-as-artifacts.js';

export const LANGSMITH_PROFILE = defineProfile({
  name: 'langsmith',
  paths: ['/a2a/:agent'],
  codecs: [defineCodec({ ...V0_3_FAMILY, shape }), defineCodec({ ...V1_0_FAMILY, shape })],
  versions: ['0.3', '1.0'],
  absentId: 'refused',
  accept: 'by-method',
  parts: { always: ['text', 'data'], filesIfDeclared: true, refusal: 'content-type-not-supported' },
  rules: { reply: 'task' },
});
