import { ARBITER_PROFILE } from './arbiter.js';
import { CAPSULE_PROFILE } from './capsule.js';
import { LANGSMITH_PROFILE } from './langsmith.js';
import { ORLOJ_PROFILE } from './orloj.js';
import type { Profile } from './profile.js';
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

export type ProfileName = keyof typeof PROFILES;

/** One path that takes JSON-RPC, with the profiles that share it. */
export interface RpcPath {
  path: string;
  profiles: readonly [Profile, ...Profile[]];
}

/** Every JSON-RPC path of the profiles. */
export function rpcPaths(profiles: readonly Profile[] = Object.values(PROFILES)): RpcPath[] {
  const paths = new Map<string, [Profile, ...Profile[]]>();
  for (const profile of profiles) {
    for (const path of profile.paths) {
      const sharing = paths.get(path);
      if (sharing) sharing.push(profile);
      else paths.set(path, [profile]);
    }
  }
  return [...paths].map(([path, sharing]) => ({ path, profiles: sharing }));
}

/**
 * The profile that serves a method at a path: the first that has it, else the last, which also answers while
 * the method is not known. Profiles that share a path must agree on everything that comes before the method:
 * body limit, version check, `absentId`.
 */
export const profileFor = ({ profiles }: RpcPath, method?: string): Profile =>
  (method === undefined ? undefined : profiles.find((profile) => profile.codecFor(method))) ??
  profiles.at(-1) ??
  profiles[0];
