import { AgentEvent } from '@a2a-js/sdk/server';

const WORKING = 2;
const COMPLETED = 3;
const part = ($case, value, more = {}) => ({
  content: { $case, value },
  filename: '',
  mediaType: '',
  ...more,
});
const REPLY_OF_OTHER = { agent: 'helper', depth: 1, content: 'a secret of the helper' };

export default {
  async execute({ taskId, contextId }, bus) {
    const say = (artifactId, parts, event, append = false) =>
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: { artifactId, name: artifactId, parts, metadata: event && { 'baton.event': event } },
          append,
          lastChunk: false,
        }),
      );
    const state = (value, usage) =>
      bus.publish(
        AgentEvent.statusUpdate({
          taskId,
          contextId,
          status: { state: value },
          metadata: { 'baton.usage': usage },
        }),
      );
    state(WORKING, { inputTokens: 142, outputTokens: 0 });
    say('call', [part('data', { tool: 'search', ok: true })], 'tool-call');
    say('files', [part('raw', Buffer.from('a,b\n'), { filename: 'table.csv', mediaType: 'text/csv' })]);
    say('reply', [part('data', REPLY_OF_OTHER), part('text', REPLY_OF_OTHER.content)], 'agent-reply');
    say('plan', [part('data', { steps: 2 })], 'plan');
    say('text', [part('text', 'hello ')]);
    say('text', [part('text', 'world')], undefined, true);
    state(COMPLETED, { inputTokens: 142, outputTokens: 218 });
    bus.finished();
  },
  cancelTask: async () => undefined,
};
