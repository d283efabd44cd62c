import type { Actor, OperatorToken } from '@baton/database';
import { callerOf } from '@baton/identity';
import type { CallRequest } from '../http/requests.js';

/** Characters of a token's name in a record. */
const MAX_NAME = 200;

/** Who sends the request, for the audit log. */
export function actorOf(request: CallRequest): Actor {
  return { ...callerOf(request).principal, address: request.ip, requestId: request.id };
}

/** A request with the operator that the guard has found. */
export type OperatorRequest = CallRequest & { operator?: OperatorToken };

/** The token of the operator who sends the request. Throws if the route is not for operators, which is a bug. */
export function operatorOf({ operator }: OperatorRequest): OperatorToken {
  if (!operator) throw new Error('operatorOf: the route is not for operators');
  return operator;
}

/** The operator who sends the request, for the audit log. Throws if the route is not for operators, which is a bug. */
export function operatorActorOf(request: OperatorRequest): Actor {
  const { id, name, prefix } = operatorOf(request);
  const actor = {
    kind: 'operator',
    key: `operator:${id}`,
    name: `${name.slice(0, MAX_NAME)} (${prefix})`,
  } as const;
  return { ...actor, address: request.ip, requestId: request.id };
}
