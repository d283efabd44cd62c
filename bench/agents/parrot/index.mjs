import { AgentEvent } from '@a2a-js/sdk/server';

const COMPLETED = 3;

/** Repeats the message, in as many chunks as `metadata.echo.chunks` asks for. */
export default class Parrot {
  async execute({ taskId, contextId, userMessage: { parts, metadata } }, bus) {
    const chunks = metadata?.echo?.chunks ?? 1;
    for (let i = 1; i <= chunks; i++) {
      const artifact = { artifactId: 'echo-1', name: 'echo', parts };
      bus.publish(
        AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: i > 1, lastChunk: i === chunks }),
      );
    }
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: COMPLETED } }));
    bus.finished();
  }

  async cancelTask() {}
}
