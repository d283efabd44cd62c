export { type EgressLists, egressRefusal, NO_EGRESS_LISTS } from './tenant-egress.js';
export { failureReason } from './failure-reason.js';
export { OutboundRefused } from './outbound-refused.js';
export { type Fetch, Outbound, type OutboundCalls, type OutboundLimits } from './outbound.js';
export { OutboundModule } from './outbound.module.js';
export { outboundUrl, withoutEndSlashes } from './outbound-url.js';
export { isPublicAddress, reachedAddress } from './public-address.js';
export { timeoutSignal } from './timeout-signal.js';
