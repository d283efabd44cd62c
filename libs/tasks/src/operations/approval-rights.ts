import { clock } from '@baton/telemetry';
import { type CallContext, ProtocolError, TaskState, tokenPrincipal } from '@baton/a2a';
import { type Approver, approvalsOf, asksForApproval } from '@baton/agents';
import type { NewAuditRecord, NextTurn, StoredTask } from '@baton/database';
import { actorOf } from '../core/actor.js';

/**
 * Who answers a task that waits for approval; undefined if it does not. Its agent sets the terms in the question. For agents of the
 * runtime `llm`, no model can change them.
 * @throws ProtocolError `forbidden` if the caller may not answer
 */
export function approverFor(
  {
    principal,
    scopes,
    rules,
  }: Pick<CallContext, 'principal' | 'scopes'> & Partial<Pick<CallContext, 'rules'>>,
  { task: { status }, owner, truncation }: Pick<StoredTask, 'task' | 'owner' | 'truncation'>,
): Approver | undefined {
  const isCut = status?.state === TaskState.TASK_STATE_INPUT_REQUIRED && truncation?.statusMessage === true;
  if (!isCut && !asksForApproval(status)) return undefined;
  if (rules?.approvals === 'refused') {
    throw new ProtocolError(
      'unsupported-operation',
      'message.taskId: the task waits for approval: a person must give it, in the console or in a client that asks the person',
    );
  }
  const asked = approvalsOf(status) ?? [];
  if (principal.kind === 'guest') {
    const mayGuests = asked.length > 0 && asked.every(({ guests }) => guests === true);
    if (!mayGuests)
      throw new ProtocolError('forbidden', 'The task waits for approval, and guests may not approve');
  } else if (!scopes.includes('tasks:approve') && !scopes.includes('admin')) {
    throw new ProtocolError(
      'forbidden',
      'the token lacks the scope tasks:approve, and the task waits for approval',
      {
        metadata: { missingScope: 'tasks:approve' },
      },
    );
  }
  if (asked.some(({ by }) => by === 'other') && (owner === null || owner === principal.key)) {
    throw new ProtocolError(
      'forbidden',
      'The task waits for the approval of a principal other than its owner',
    );
  }
  return { principal: principal.key, at: clock.date().toISOString() };
}

/** Whether the caller may answer a task that waits: its call for an approval, or its question. @param caller that may write to the task */
export function mayAnswer(
  caller: Pick<CallContext, 'principal' | 'scopes'>,
  stored: Pick<StoredTask, 'task' | 'owner' | 'truncation'>,
): boolean {
  try {
    approverFor(caller, stored);
    return true;
  } catch (error) {
    if (error instanceof ProtocolError && error.kind === 'forbidden') return false;
    throw error;
  }
}

/** The audit record of an answer to a task that waits for approval. Its words stay in the task. */
export function approvalRecord(
  call: Pick<CallContext, 'principal' | 'address' | 'requestId'>,
  { task: { id, status }, owner }: Pick<StoredTask, 'task' | 'owner'>,
): NewAuditRecord {
  const calls = approvalsOf(status)?.map(({ callId, tool }) => ({ callId, tool }));
  return {
    action: 'approval.given',
    target: { kind: 'task', name: id },
    by: actorOf(call),
    detail: { owner, calls: calls?.slice(0, 10) },
  };
}

/**
 * The token or the issuer that is checked again when the approval is written: it may have been revoked or removed. The rights of
 * other callers cannot change during a call.
 */
export function approvingBy({
  principal: { kind, key },
  issuerId,
}: Pick<CallContext, 'principal' | 'issuerId'>): Pick<NextTurn, 'approvingToken' | 'approvingIssuer'> {
  if (kind === 'token') return { approvingToken: key.slice(tokenPrincipal('').key.length) };
  return issuerId === undefined ? {} : { approvingIssuer: issuerId };
}
