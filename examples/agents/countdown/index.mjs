import { TaskState } from '@a2a-js/sdk';
import { AgentEvent } from '@a2a-js/sdk/server';
import { setTimeout as delay } from 'node:timers/promises';

const MAX = 1000;
const STEP_MS = 250;

/** Counts down from the number in the message, one chunk of an artifact a step. */
export default class CountdownExecutor {
  /** One controller for each task that is counting. */
  counting = new Map();

  async execute({ taskId, contextId, userMessage }, eventBus) {
    const controller = new AbortController();
    this.counting.set(taskId, controller);
    const update = (state) =>
      eventBus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state } }));

    eventBus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: { state: TaskState.TASK_STATE_SUBMITTED },
        artifacts: [],
        history: [userMessage],
      }),
    );
    try {
      for (let from = startOf(userMessage), n = from; n > 0; n--) {
        await delay(STEP_MS, undefined, { signal: controller.signal });
        eventBus.publish(
          AgentEvent.artifactUpdate({
            taskId,
            contextId,
            artifact: { artifactId: 'countdown', name: 'countdown', parts: [text(`${n}\n`)] },
            append: n < from,
            lastChunk: n === 1,
          }),
        );
      }
      update(TaskState.TASK_STATE_COMPLETED);
    } catch (error) {
      if (error.name !== 'AbortError') throw error;
      update(TaskState.TASK_STATE_CANCELED);
    } finally {
      this.counting.delete(taskId);
    }
  }

  async cancelTask(taskId) {
    this.counting.get(taskId)?.abort();
  }
}

/** The first number in the message, between 1 and 1000; 10 if there is none. */
function startOf({ parts }) {
  const words = parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join(' ');
  const [number] = words.match(/\d+/) ?? ['10'];
  return Math.min(Math.max(Number(number), 1), MAX);
}

const text = (value) => ({ content: { $case: 'text', value }, filename: '', mediaType: 'text/plain' });
