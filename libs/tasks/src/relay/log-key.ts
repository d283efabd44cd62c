import type { CallContext } from '@baton/a2a';

/** Which task a watch follows, and in whose name it reads. */
export interface LogKey {
  tenantId: string;
  taskId: string;
  /** Readers with the same holder share a part of the memory and the turns of `LogReader`. */
  holder: string;
}

/** All guests of a tenant are one holder. So they do not slow down its own callers, and a guest with many addresses gets no larger share. */
export function logKeyOf({ tenantId, principal }: CallContext, taskId: string): LogKey {
  return { tenantId, taskId, holder: principal.kind === 'guest' ? `${tenantId} guests` : tenantId };
}
