/**
 * `spec`: the specification as it stands, 0.3 and 1.0 side by side on one path. The method names of the two
 * families are disjoint, so the method picks the codec; `A2A-Version` only validates.
 */
import { V0_3_CODEC } from '../../codecs/v0_3/index.js';
import { V1_0_CODEC } from '../../codecs/v1_0/index.js';
import { type Profile, parseVersion, versionNotSupported } from '../profile.js';

const CODECS = [V1_0_CODEC, V0_3_CODEC];
const VERSIONS = ['0.3', '1.0'];
/** What a caller who names no version means (A2A 1.0 §3.6.2). */
const DEFAULT_VERSION = '0.3';

const codecFor = (method: string) => CODECS.find((codec) => codec.hasMethod(method));

export const SPEC_PROFILE: Profile = {
  name: 'spec',
  codecFor,
  resolveVersion(requested = '', method = '') {
    if (requested.trim() === '') return codecFor(method)?.version ?? DEFAULT_VERSION;
    const version = parseVersion(requested);
    if (version !== undefined && VERSIONS.includes(version)) return version;
    throw versionNotSupported(requested, VERSIONS);
  },
  errors: {},
  bodyLimitBytes: 16 * 1024 * 1024,
};
