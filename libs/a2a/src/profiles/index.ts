import { ARBITER_PROFILE } from './arbiter.js';
import { CAPSULE_PROFILE } from './capsule.js';
import { LANGSMITH_PROFILE } from './langsmith.js';
import { ORLOJ_PROFILE } from './orloj.js';
import type { Profile, RpcPath } from './profile.js';
import { SOCIETY_PROFILE } from './society.js';
import { SPEC_PROFILE } from './spec.js';

/** Every profile, by name. A new one is one file and one row here. */
export const PROFILES = {
  spec: SPEC_PROFILE,
  arbiter: ARBITER_PROFILE,
  langsmith: LANGSMITH_PROFILE,
  orloj: ORLOJ_PROFILE,
  society: SOCIETY_PROFILE,
  capsule: CAPSULE_PROFILE,
} satisfies Record<string, Profile>;

/** Every JSON-RPC path of the profiles. */
export function rpcPaths(): RpcPath[] {
  const paths = new Map<string, [Profile, ...Profile[]]>();
  for (const profile of Object.values<Profile>(PROFILES)) {
    for (const path of profile.paths) {
      const sharing = paths.get(path);
      if (sharing) sharing.push(profile);
      else paths.set(path, [profile]);
    }
  }
  return [...paths].map(([path, sharing]) => ({ path, profiles: sharing }));
}
