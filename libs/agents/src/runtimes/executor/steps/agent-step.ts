import type { AgentList } from '../../../agent-list.js';
import { ChildRefusal } from '../../../child-refusal.js';
import type { ChildTasks } from '../../../child-tasks.js';
import { replyOf } from '../../llm/tools/callee-tools.js';
import { STEP_LIMITS, type StepReply } from '../step-protocol.js';
import type { OpenStep } from './open-step.js';
import { requestOf } from './step-checks.js';
import type { JournaledSteps } from './journaled-steps.js';

/** The parts of the platform that a call of another agent needs. */
export interface AgentCallPorts {
  agents: Pick<AgentList, 'find'>;
  children: Pick<ChildTasks, 'call'>;
  /** Maximum depth of a child below the first task, and maximum number of tasks below it. */
  limits: { depth: number; tasks: number };
}

/**
 * Finds or creates the child of a call, and ends the step if the child has ended its turn.
 * @param request JSON of the call, as the process of the agent sent it
 * @returns the result, the failure of the step, or that the step waits for its child
 */
export async function callAgent(
  journal: JournaledSteps,
  ports: AgentCallPorts | undefined,
  step: OpenStep,
  request: string,
  signal: AbortSignal,
): Promise<StepReply> {
  const { turn } = journal;
  const { message, data, taskId } = requestOf(request);
  const agent = await ports?.agents.find(turn.tenantId, step.agent ?? '');
  if (!ports || !agent || agent.status) return journal.fail(step, `There is no agent "${step.agent ?? ''}".`);
  const callId = journal.callIdOf(step);
  const openCalls = journal.steps.filter(
    (other) => other.id < step.id && other.agent === step.agent && !other.ended,
  );
  try {
    const child = await ports.children.call(turn, {
      callId,
      lane: openCalls.length + 1,
      agent,
      message,
      limits: ports.limits,
      signal,
      ...(data !== undefined && { data }),
      ...(taskId !== undefined && { taskId }),
    });
    if (child.isAtWork) {
      step.child = child.task.id;
      return { isWaiting: true };
    }
    const reply = replyOf(agent, child);
    if (!reply.ok) return await journal.fail(step, String(reply.content));
    const answer = reply.content as { state?: string; question?: string };
    const isAsking = reply.text !== undefined;
    const result = JSON.stringify({
      taskId: child.task.id,
      state: isAsking ? answer.state : 'completed',
      content: isAsking ? answer.question : reply.content,
    });
    if (Buffer.byteLength(result) > STEP_LIMITS.resultBytes) {
      return await journal.fail(
        step,
        `the answer of ${agent.slug} has more than ${STEP_LIMITS.resultBytes} bytes`,
      );
    }
    await journal.end(step, { result });
    return { result };
  } catch (error) {
    if (error instanceof ChildRefusal) return journal.fail(step, error.message);
    throw error;
  }
}
