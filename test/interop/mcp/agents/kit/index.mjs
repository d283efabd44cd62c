import { Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent } from '@a2a-js/sdk/server';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

const part = ($case, value, more = {}) => ({
  content: { $case, value },
  filename: '',
  mediaType: '',
  ...more,
});
const text = (value) => part('text', value);
const file = (mediaType, bytes) => part('raw', Buffer.from(bytes), { filename: 'file', mediaType });

const PNG = file(
  'image/png',
  Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==',
    'base64',
  ),
);
const BYTES = file('application/octet-stream', 'baton');

/** A form with one text. */
const formOf = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] });
/** Asks for one text, and answers with what `answer` makes of it. */
const asking = (message, name, answer) => (turn) =>
  turn.answers.length === 0
    ? turn.ask(message, formOf(name))
    : turn.complete(text(answer(turn.answers[0][name])));

/** What the agent does for the name of a tool. */
const TOOLS = {
  test_simple_text: (turn) => turn.complete(text('This is a simple text response for testing.')),
  test_image_content: (turn) => turn.complete(PNG),
  test_audio_content: (turn) => turn.complete(file('audio/wav', 'RIFF')),
  test_embedded_resource: (turn) => turn.complete(BYTES),
  test_multiple_content_types: (turn) => turn.complete(text('Multiple content types test:'), PNG, BYTES),
  test_error_handling: (turn) => turn.end(TaskState.TASK_STATE_FAILED, 'This tool intentionally fails'),
  test_tool_with_progress: (turn) => {
    for (const done of [0, 50, 100]) turn.state(TaskState.TASK_STATE_WORKING, `${done} of 100`);
    turn.complete(text('done'));
  },
  test_input_required_result_elicitation: asking('What is your name?', 'name', (name) => `Hello, ${name}!`),
  test_input_required_result_request_state: asking('Please confirm', 'ok', () => 'state-ok'),
  test_input_required_result_tampered_state: asking('Please confirm', 'ok', () => 'confirmed'),
  test_input_required_result_capabilities: asking('Please confirm', 'ok', () => 'confirmed'),
  test_input_required_result_multi_round: ({ answers: { length }, ...turn }) => {
    if (length === 0) return turn.ask('Step 1: What is your name?', formOf('name'));
    if (length === 1) return turn.ask('Step 2: What is your favorite color?', formOf('color'));
    return turn.complete(text('done'));
  },
  greet: (turn) => turn.complete(text(`Hello, ${turn.input.name ?? 'World'}!`)),
  slow_compute: async (turn) => {
    await sleep((turn.input.seconds ?? 1) * 1_000);
    turn.complete(text(`Computed ${turn.input.label ?? ''}`));
  },
  failing_job: (turn) => turn.end(TaskState.TASK_STATE_FAILED, 'The job has failed'),
  confirm_delete: asking('Delete it?', 'confirm', () => 'deleted'),
};

/** What the parts of a message say. */
function read({ parts }) {
  const data = parts.flatMap(({ content }) => (content?.$case === 'data' ? [content.value] : []));
  const texts = parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : []));
  return { name: texts[0], data: data[0] ?? {} };
}

function turnOf({ task, userMessage, taskId, contextId }, bus) {
  const ids = { taskId, contextId };
  const messages = (task?.history ?? []).filter(({ role }) => role === Role.ROLE_USER);
  const all = messages.some(({ messageId }) => messageId === userMessage.messageId)
    ? messages
    : [...messages, userMessage];
  const [first, ...answers] = all.map(read);
  const state = (value, ...parts) => {
    const message = { messageId: randomUUID(), role: Role.ROLE_AGENT, parts, ...ids };
    const status = { state: value, message: parts.length === 0 ? undefined : message };
    bus.publish(AgentEvent.statusUpdate({ ...ids, status }));
  };
  return {
    name: first.name,
    input: first.data,
    answers: answers.map(({ data }) => data),
    state: (value, said) => state(value, text(said)),
    end: (value, said) => state(value, text(said)),
    ask: (message, requestedSchema) =>
      state(TaskState.TASK_STATE_INPUT_REQUIRED, text(message), part('data', { requestedSchema })),
    complete: (...parts) => {
      const artifact = { artifactId: randomUUID(), name: 'output', parts };
      bus.publish(AgentEvent.artifactUpdate({ ...ids, artifact, append: false, lastChunk: true }));
      state(TaskState.TASK_STATE_COMPLETED);
    },
  };
}

export default {
  async execute(request, bus) {
    const turn = turnOf(request, bus);
    const tool = TOOLS[turn.name];
    if (tool) await tool(turn);
    else turn.end(TaskState.TASK_STATE_REJECTED, `There is no tool ${turn.name}`);
    bus.finished();
  },
  cancelTask: async () => undefined,
};
