import { callerOf } from '@baton/identity';
import { networkOf } from './network-of.js';
import type { CallRequest } from './requests.js';

/** Who holds the memory and takes the turns of a request: a tenant, or a network of guests of the tenant. */
export function holderOf(request: CallRequest): string {
  const { tenantId, principal } = callerOf(request);
  return principal.kind === 'guest' ? `${tenantId} ${networkOf(request.ip)}` : tenantId;
}
