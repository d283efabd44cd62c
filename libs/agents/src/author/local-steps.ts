import { Message } from '@a2a-js/sdk';
import type { AgentReply, DurableSteps } from '../runtimes/executor/child/steps.js';
import { HostedSteps } from '../runtimes/executor/child/hosted-steps.js';

/** Answers of the caller and replies of other agents in a unit test, by the name of the step. */
export interface StepAnswers {
  /** Texts of the caller, for `waitForInput`. */
  answers?: Readonly<Record<string, string>>;
  /** Contents of replies, for `callAgent`. */
  replies?: Readonly<Record<string, unknown>>;
}

/**
 * Durable steps without a server, for unit tests: each step runs once, is tried again at once when it throws, and its result is
 * checked as Baton checks it. Sleeps pass at once. A question or a call for which the test has no answer rejects.
 */
export function localSteps({ answers = {}, replies = {} }: StepAnswers): DurableSteps {
  const steps: HostedSteps = new HostedSteps([], {
    say: ({ id }) => queueMicrotask(() => steps.onReply(id, { until: 0, key: `test-step-${id}` })),
    park: () => undefined,
  });
  const { step, sleep } = steps.api;
  const known = (name: string, given: Readonly<Record<string, unknown>>, option: string): unknown => {
    if (Object.hasOwn(given, name)) return given[name];
    throw new Error(`the test has nothing for step "${name}": add it to ${option}`);
  };
  return {
    step,
    sleep,
    waitForInput: (name) =>
      step(name, () => known(name, answers, 'answers'), { attempts: 1 }).then((text) => ({
        ...Message.fromJSON({ messageId: name, role: 'ROLE_USER', parts: [{ text }] }),
        request: { metadata: undefined, configuration: undefined },
      })),
    callAgent: (name) =>
      step(
        name,
        (): AgentReply => ({ taskId: name, state: 'completed', content: known(name, replies, 'replies') }),
        { attempts: 1 },
      ),
  };
}
