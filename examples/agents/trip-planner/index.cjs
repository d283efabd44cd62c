const { randomUUID } = require('node:crypto');
const { Role, TaskState } = require('@a2a-js/sdk');
const { AgentEvent } = require('@a2a-js/sdk/server');

const QUESTIONS = ['Where do you want to go?', 'For how many days?'];

/**
 * Asks one question a turn and plans when it has both answers. It keeps nothing in memory: what was answered
 * so far is in the history of the stored task, so every turn may run on another process.
 */
class TripPlannerExecutor {
  async execute({ taskId, contextId, userMessage, task }, eventBus) {
    eventBus.publish(
      AgentEvent.task(
        task ?? {
          id: taskId,
          contextId,
          status: { state: TaskState.TASK_STATE_SUBMITTED },
          artifacts: [],
          history: [userMessage],
        },
      ),
    );

    const answers = answersIn(task);
    const question = QUESTIONS[answers.length];
    if (question) {
      const message = { ...agentText(question), messageId: randomUUID(), taskId, contextId };
      eventBus.publish(
        AgentEvent.statusUpdate({
          taskId,
          contextId,
          status: { state: TaskState.TASK_STATE_INPUT_REQUIRED, message },
        }),
      );
      return;
    }

    const [destination, days] = answers;
    eventBus.publish(
      AgentEvent.artifactUpdate({
        taskId,
        contextId,
        artifact: {
          artifactId: 'plan',
          name: 'plan',
          parts: [
            part('text', planOf(destination, days), 'text/plain'),
            part('data', { destination, days }, 'application/json'),
          ],
        },
        append: false,
        lastChunk: true,
      }),
    );
    eventBus.publish(
      AgentEvent.statusUpdate({ taskId, contextId, status: { state: TaskState.TASK_STATE_COMPLETED } }),
    );
  }

  async cancelTask() {
    // Each turn is over at once; there is nothing to stop.
  }
}

/** What the caller said after each question: every message of theirs but the first. */
function answersIn(task) {
  const said = (task?.history ?? []).filter(({ role }) => role === Role.ROLE_USER);
  return said.slice(1).map(({ parts }) => parts.map(({ content }) => content.value).join(' '));
}

function planOf(destination, days) {
  const count = Math.min(Math.max(Number.parseInt(days, 10) || 1, 1), 14);
  const plan = Array.from({ length: count }, (_, i) =>
    i === 0 ? `Day 1: arrive in ${destination}` : `Day ${i + 1}: see more of ${destination}`,
  );
  return plan.join('\n');
}

const part = ($case, value, mediaType) => ({ content: { $case, value }, filename: '', mediaType });
const agentText = (value) => ({ role: Role.ROLE_AGENT, parts: [part('text', value, 'text/plain')] });

module.exports = TripPlannerExecutor;
