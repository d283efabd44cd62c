import { isOfCaller } from '@baton/a2a';
import type { AccessTokenRequest } from './access-tokens.js';

/** The sign-in at a server that an agent calls is missing, or lacks scopes. The message is for callers of the agent: a clause. */
export class SignInNeeded extends Error {
  override readonly name = 'SignInNeeded';

  /** @param missing scopes that the sign-in lacks, and `request` asks for. Unset: there is no sign-in */
  constructor(
    readonly request: AccessTokenRequest,
    readonly missing?: readonly string[],
  ) {
    const { host } = new URL(request.url);
    const isCaller = isOfCaller(request.settings);
    const yours = missing
      ? `your sign-in at ${host} lacks ${scopesShown(missing)}`
      : `you are not signed in at ${host}`;
    super(
      isCaller ? yours : `there is no sign-in at ${host}: an administrator of the tenant must sign in there`,
    );
  }

  /** The caller of the task can sign in. */
  get isCallers(): boolean {
    return isOfCaller(this.request.settings);
  }
}

/** Characters of the scopes in the question. Another server names them. */
const MAX_SHOWN = 200;

/** Scopes in words: "the scope a", "the scopes a b". */
export function scopesShown(scopes: readonly string[]): string {
  const all = scopes.join(' ');
  return `the scope${scopes.length === 1 ? '' : 's'} ${all.length > MAX_SHOWN ? `${all.slice(0, MAX_SHOWN)}…` : all}`;
}
