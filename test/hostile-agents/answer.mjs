import { AgentEvent } from '@a2a-js/sdk/server';

export const textOf = ({ userMessage }) => userMessage.parts.map(({ content }) => content?.value).join('');

/** Ends a task with one artifact. */
export function answer({ taskId, contextId }, bus, text) {
  const parts = [
    { content: { $case: 'text', value: text }, filename: '', mediaType: '', metadata: undefined },
  ];
  const artifact = {
    artifactId: 'answer',
    name: '',
    description: '',
    extensions: [],
    metadata: undefined,
    parts,
  };
  const metadata = undefined;
  bus.publish(
    AgentEvent.artifactUpdate({ taskId, contextId, append: false, lastChunk: true, metadata, artifact }),
  );
  const status = { state: 3, message: undefined, timestamp: undefined };
  bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata }));
}
