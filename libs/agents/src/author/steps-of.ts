import type { DurableSteps, TenantSecrets } from '../runtimes/executor/child/steps.js';

/**
 * The durable steps and secrets of a turn, for an `AgentExecutor`: `const { step, sleep } = stepsOf(requestContext)`. Baton puts them
 * into the context of the request. The server of the SDK has none.
 */
export const stepsOf = ({ context }: { context?: unknown }): DurableSteps & TenantSecrets =>
  (context ?? {}) as DurableSteps & TenantSecrets;
