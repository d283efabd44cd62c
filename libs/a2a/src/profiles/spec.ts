/**
 * `spec`: the specification as it stands, 0.3 and 1.0 side by side on one path. The method names of the two
 * versions are disjoint, so the method picks the codec; `A2A-Version` only validates. A caller who names no
 * version means 0.3 (A2A 1.0 §3.6.2).
 */
import { defineCodec } from '../codecs/codec.js';
import { V0_3 } from '../codecs/v0_3.js';
import { V1_0_CODEC } from '../codecs/v1_0.js';
import { defineProfile } from './profile.js';

/** Clients of 0.3 read only frames of a stream (docs/inside/adr/0022-errors-before-a-stream.md). */
const V0_3_CODEC = defineCodec({ ...V0_3, framing: { enveloped: true, earlyError: 'frame' } });

export const SPEC_PROFILE = defineProfile({
  name: 'spec',
  paths: ['/agents/:agent'],
  codecs: [V0_3_CODEC, V1_0_CODEC],
  versions: ['0.3', '1.0'],
  parts: 'input-modes',
});
