import { type Artifact, type Message, type Part, type Task, type TaskStatus, textPart } from '@baton/a2a';
import type { AgentOutput } from '@baton/agents';
import { TurnFailure } from '../core/turn-failure.js';

/**
 * The output of an agent with the members that A2A requires (1.0 §4.1, `REQUIRED` in a2a.proto). Clients such as those of Java
 * end a stream at an event without one. Where the meaning is clear, the member is added:
 *
 * - An artifact without parts, such as the last chunk of a stream, gets an empty text.
 * - A status message without parts has no content. It is left out, or gets an empty text if it has metadata.
 * - A reply without parts gets an empty text.
 *
 * Ids of tasks, contexts and messages, roles and times are those of the platform (`TurnOutput`).
 *
 * @throws TurnFailure for a part without content. Its message names the part.
 */
export function completeOutput(output: AgentOutput): AgentOutput {
  switch (output.$case) {
    case 'artifactUpdate': {
      const { artifact } = output.value;
      return { ...output, value: { ...output.value, artifact: artifact && wholeArtifact(artifact) } };
    }
    case 'statusUpdate':
      return { ...output, value: { ...output.value, status: wholeStatus(output.value.status) } };
    case 'message':
      return { ...output, value: withText(wholeMessage(output.value)) };
    case 'task':
      return { ...output, value: wholeTask(output.value) };
  }
}

const wholeTask = (task: Task): Task => ({
  ...task,
  status: wholeStatus(task.status),
  artifacts: task.artifacts.map(wholeArtifact),
});

function wholeArtifact(artifact: Artifact): Artifact {
  assertContent(artifact.parts, `the artifact "${artifact.artifactId}"`);
  return withText(artifact);
}

function wholeStatus(status: TaskStatus | undefined): TaskStatus | undefined {
  if (!status?.message) return status;
  const { parts, metadata } = status.message;
  const saysNothing = parts.length === 0 && Object.keys(metadata ?? {}).length === 0;
  return { ...status, message: saysNothing ? undefined : withText(wholeMessage(status.message)) };
}

function wholeMessage(message: Message): Message {
  assertContent(message.parts, 'a message');
  return message;
}

const withText = <T extends { parts: Part[] }>(content: T): T =>
  content.parts.length > 0 ? content : { ...content, parts: [textPart('')] };

/** The content of such a part is unknown, so nothing can replace it. */
function assertContent(parts: readonly Part[], where: string): void {
  const index = parts.findIndex(({ content }) => content === undefined);
  if (index < 0) return;
  throw new TurnFailure(
    `The agent sent ${where} whose parts[${index}] has no content: a part must have one of text, raw, url and data`,
  );
}
