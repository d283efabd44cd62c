import type { AccessTokenRequest } from './access-tokens.js';

/** Nobody is signed in at a server that an agent calls. The message is for the callers of the agent: a clause. */
export class SignInNeeded extends Error {
  override readonly name = 'SignInNeeded';

  constructor(readonly request: AccessTokenRequest) {
    const { host } = new URL(request.url);
    const isCaller = request.settings.credentials === 'perCaller';
    super(
      isCaller
        ? `you are not signed in at ${host}`
        : `nobody is signed in at ${host}: an administrator of the tenant must sign in there`,
    );
  }

  /** The caller of the task can sign in. */
  get isCallers(): boolean {
    return this.request.settings.credentials === 'perCaller';
  }
}
