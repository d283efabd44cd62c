import {
  type Artifact,
  EVENT_KIND,
  type Message,
  USAGE,
  partsWithoutReserved,
  withoutReserved,
} from '@baton/a2a';
import type { AgentOutput } from './agent-runtime.js';

/** Keys of the platform that agents may set: the kind of an artifact, and the used tokens. */
const REPORTED = [EVENT_KIND, USAGE];

/**
 * Removes metadata that only the platform writes from the output of an agent in code or of a remote agent: who has approved a call, for
 * instance, or which schedule has made a task.
 */
export function fromAgent(output: AgentOutput): AgentOutput {
  switch (output.$case) {
    case 'message':
      return { ...output, value: ownMessage(output.value) };
    case 'statusUpdate': {
      const { status, metadata } = output.value;
      const own = status?.message ? { ...status, message: ownMessage(status.message) } : status;
      return {
        ...output,
        value: { ...output.value, status: own, metadata: reported(metadata) },
      };
    }
    case 'artifactUpdate': {
      const { artifact, metadata } = output.value;
      const own = artifact && ownArtifact(artifact);
      return {
        ...output,
        value: { ...output.value, artifact: own, metadata: reported(metadata) },
      };
    }
    case 'task': {
      const { status, artifacts, metadata } = output.value;
      const own = status?.message ? { ...status, message: ownMessage(status.message) } : status;
      const value = { ...output.value, status: own, artifacts: artifacts.map(ownArtifact) };
      return { ...output, value: { ...value, metadata: reported(metadata) } };
    }
  }
}

/** Tokens that an agent reports were not metered by this Baton, even if the agent belongs to another Baton. */
function reported(metadata: Record<string, unknown> | undefined): Record<string, unknown> | undefined {
  const own = withoutReserved(metadata, REPORTED);
  const usage = own?.[USAGE];
  if (typeof usage !== 'object' || usage === null || !('metered' in usage)) return own;
  const { metered: _, ...tokens } = usage;
  return { ...own, [USAGE]: tokens };
}

const ownMessage = (message: Message): Message => ({
  ...message,
  metadata: withoutReserved(message.metadata, REPORTED),
  parts: partsWithoutReserved(message.parts),
});

const ownArtifact = (artifact: Artifact): Artifact => ({
  ...artifact,
  metadata: withoutReserved(artifact.metadata, REPORTED),
  parts: partsWithoutReserved(artifact.parts),
});
