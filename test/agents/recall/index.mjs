import { AgentEvent } from '@a2a-js/sdk/server';

const COMPLETED = 3;
const USER = 1;
const textOf = ({ parts }) => parts.map(({ content }) => content?.value).join('');

/** What it is given of the conversation: the task it goes on with, the tasks before it, the new message. */
export default {
  async execute({ taskId, contextId, userMessage, task, referenceTasks = [] }, bus) {
    const given = [...referenceTasks, ...(task ? [task] : [])].flatMap(({ history }) => history);
    const said = [...given.filter(({ role }) => role === USER), userMessage];
    const distinct = [...new Map(said.map((message) => [message.messageId, message])).values()];
    const value = distinct.map(textOf).join(' | ');
    const parts = [{ content: { $case: 'text', value }, filename: '', mediaType: '' }];
    const artifact = { artifactId: 'said', name: 'said', parts };
    bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true }));
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: COMPLETED } }));
    bus.finished();
  },
  cancelTask: async () => undefined,
};
