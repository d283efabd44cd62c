/**
 * `capsule`: Capsule Agents, at the root. 0.3 as it stands; its own clients read a stream's frames by their
 * wrapper member, those of the 0.3 SDK by their flat fields, so frames have both.
 */
import { defineCodec } from '../codecs/codec.js';
import { V0_3_WITH_LAX_STREAM } from '../codecs/v0_3.js';
import { V1_0_CODEC } from '../codecs/v1_0.js';
import { ROOT_ERRORS, defineProfile } from './profile.js';

const V0_3_WITH_WRAPPERS = defineCodec({
  ...V0_3_WITH_LAX_STREAM,
  encodeItem(item) {
    const flat = V0_3_WITH_LAX_STREAM.encodeItem(item) as Record<string, unknown>;
    return { [item.payload.$case]: flat, ...flat };
  },
});

export const CAPSULE_PROFILE = defineProfile({
  name: 'capsule',
  paths: ['/'],
  codecs: [V0_3_WITH_WRAPPERS, V1_0_CODEC],
  versions: ['0.1', '0.3', '1.0'],
  errors: ROOT_ERRORS,
  bodyLimit: 'small',
});
