import { type Profile, SPEC_PROFILE } from '@baton/a2a';

/** One path that takes JSON-RPC, and the profile that says what is promised there. */
export interface DispatchRoute {
  /** `:agent` is the slug or id of the agent. */
  path: string;
  profile: Profile;
}

/** Every JSON-RPC path of the server. A further profile or path is one more row. */
export const DISPATCH_ROUTES: readonly DispatchRoute[] = [{ path: '/agents/:agent', profile: SPEC_PROFILE }];
