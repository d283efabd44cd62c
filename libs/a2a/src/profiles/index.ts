import type { Profile } from './profile.js';
import { SPEC_PROFILE } from './spec/index.js';

/** Every profile, by name. A new one is one folder and one row here. */
export const PROFILES = {
  spec: SPEC_PROFILE,
} satisfies Record<string, Profile>;

export type ProfileName = keyof typeof PROFILES;
