import { Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent } from '@a2a-js/sdk/server';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

/** Twice the time in which the TCK expects the next event of a stream. */
const LONG_MS = 4_000;

const part = ($case, value, more = {}) => ({
  content: { $case, value },
  filename: '',
  mediaType: '',
  ...more,
});
const FILE = { filename: 'output.txt', mediaType: 'text/plain' };

/** What the agent does for a message whose id begins with a name (the scenarios of the TCK). The longest name counts. */
const SCENARIOS = {
  'tck-complete-task': (turn) => turn.state(TaskState.TASK_STATE_COMPLETED, 'Hello from TCK'),
  'tck-artifact-text': (turn) => turn.complete(part('text', 'Generated text content')),
  'tck-artifact-file': (turn) => turn.complete(part('raw', Buffer.from('tck'), FILE)),
  'tck-artifact-file-url': (turn) => turn.complete(part('url', 'https://example.com/output.txt', FILE)),
  'tck-artifact-data': (turn) => turn.complete(part('data', { key: 'value', count: 42 })),
  'tck-message-response': (turn) => turn.say('Direct message response'),
  'tck-input-required': (turn) => turn.state(TaskState.TASK_STATE_INPUT_REQUIRED),
  'tck-reject-task': (turn) => turn.state(TaskState.TASK_STATE_REJECTED, 'rejected'),
  'tck-stream-001': (turn) => turn.work(part('text', 'Stream hello from TCK')),
  'tck-stream-002': (turn) => turn.state(TaskState.TASK_STATE_COMPLETED),
  'tck-stream-003': (turn) => turn.work(part('text', 'Stream task lifecycle')),
  'tck-stream-ordering-001': (turn) => turn.work(part('text', 'Ordered output')),
  'tck-stream-artifact-text': (turn) => turn.work(part('text', 'Streamed text content')),
  'tck-stream-artifact-file': (turn) => turn.work(part('raw', Buffer.from('tck'), FILE)),
  'tck-stream-artifact-chunked': (turn) => turn.work(part('text', 'chunk-1 '), part('text', 'chunk-2')),
  'test-resubscribe-message-id': async (turn) => {
    turn.state(TaskState.TASK_STATE_WORKING);
    await sleep(LONG_MS);
    turn.state(TaskState.TASK_STATE_COMPLETED);
  },
};
const NAMES = Object.keys(SCENARIOS).sort((a, b) => b.length - a.length);

class Turn {
  constructor({ taskId, contextId }, bus) {
    this.task = { taskId, contextId };
    this.bus = bus;
  }

  /** Its only answer is this message. */
  say(text) {
    this.bus.publish(AgentEvent.message(this.#message(text)));
  }

  state(state, text) {
    const message = text === undefined ? undefined : this.#message(text);
    this.bus.publish(AgentEvent.statusUpdate({ ...this.task, status: { state, message } }));
  }

  /** One artifact in chunks, and then it is done. */
  complete(...chunks) {
    const artifactId = randomUUID();
    chunks.forEach((chunk, index) => {
      const artifact = { artifactId, name: 'output', parts: [chunk] };
      const lastChunk = index === chunks.length - 1;
      this.bus.publish(AgentEvent.artifactUpdate({ ...this.task, artifact, append: index > 0, lastChunk }));
    });
    this.state(TaskState.TASK_STATE_COMPLETED);
  }

  work(...chunks) {
    this.state(TaskState.TASK_STATE_WORKING);
    this.complete(...chunks);
  }

  #message(text) {
    return { messageId: randomUUID(), role: Role.ROLE_AGENT, parts: [part('text', text)], ...this.task };
  }
}

export default {
  async execute(request, bus) {
    const { messageId } = request.userMessage;
    const name = NAMES.find((each) => messageId.startsWith(each));
    const turn = new Turn(request, bus);
    if (name) await SCENARIOS[name](turn);
    else if (messageId.startsWith('tck-'))
      turn.state(TaskState.TASK_STATE_COMPLETED, 'There is no such scenario.');
    // The TCK of 0.3 has no scenarios: it continues and cancels whatever it has begun.
    else turn.state(TaskState.TASK_STATE_INPUT_REQUIRED, 'What else?');
    bus.finished();
  },
  cancelTask: async () => undefined,
};
