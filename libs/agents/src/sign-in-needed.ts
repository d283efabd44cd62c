/** Nobody is signed in at a server that an agent calls. The message is for the callers of the agent. */
export class SignInNeeded extends Error {
  override readonly name = 'SignInNeeded';

  /** @param host of the server */
  constructor(host: string) {
    super(`nobody is signed in at ${host}: an administrator of the tenant must sign in there`);
  }
}
