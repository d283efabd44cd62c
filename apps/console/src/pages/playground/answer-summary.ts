import type { Part } from '../../components/part-view';
import {
  addToArtifacts,
  type Artifact,
  type ArtifactUpdate,
  kindOf,
  type Message,
} from '../../a2a/artifacts';

/** A StreamResponse in the JSON of A2A 1.0, as far as it is read here. */
export interface StreamEvent {
  task?: {
    id: string;
    contextId: string;
    status: { state: string; message?: Message };
    artifacts?: Artifact[];
  };
  statusUpdate?: { taskId: string; contextId: string; status: { state: string; message?: Message } };
  artifactUpdate?: ArtifactUpdate;
  message?: Message;
}

/** What an answer amounts to. */
export interface AnswerContent {
  artifacts: readonly Artifact[];
  /** The newest message of the agent. */
  said: readonly Part[];
  /** Such as `input-required`. */
  taskState?: string | undefined;
  contextId?: string | undefined;
  taskId?: string | undefined;
}

/** The state that an event gives the task, such as `input-required`. */
export const stateOf = ({ task, statusUpdate }: StreamEvent): string | undefined =>
  (statusUpdate ?? task)?.status.state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');

/** Sums up the events of an answer. */
export class AnswerSummary {
  private readonly artifacts = new Map<string, Artifact>();
  private rest: Omit<AnswerContent, 'artifacts'> = { said: [] };

  add(event: StreamEvent): void {
    const { task, statusUpdate, artifactUpdate, message } = event;
    if (task) {
      this.rest = { said: task.status.message?.parts ?? [], contextId: task.contextId, taskId: task.id };
      for (const artifact of task.artifacts ?? []) addToArtifacts(this.artifacts, { artifact });
    }
    if (statusUpdate) {
      const { contextId, taskId, status } = statusUpdate;
      this.rest = { said: status.message?.parts ?? [], contextId, taskId };
    }
    if (task || statusUpdate) this.rest.taskState = stateOf(event);
    if (artifactUpdate) addToArtifacts(this.artifacts, artifactUpdate);
    if (message) this.rest.said = message.parts ?? [];
  }

  /** As it is now. Notes of tool calls and the like are no output. */
  get summary(): AnswerContent {
    const artifacts = [...this.artifacts.values()].filter((each) => kindOf(each) === undefined);
    return { ...this.rest, artifacts };
  }
}
