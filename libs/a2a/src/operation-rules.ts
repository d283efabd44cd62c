/**
 * What operations do differently for a profile, as data. They read these rules and never a profile's
 * name, so a further profile changes nothing in them.
 */
export interface OperationRules {
  /** Whether a send answers with an agent's bare message as such, or always with the task. */
  reply: 'task-or-message' | 'task';
  /** How a blocking send answers if the agent threw: with the error, or the failed task. */
  agentThrew: 'error' | 'failed-task';
  /** Whether a blocking send waits until the turn ends, or only as long as the operator lets it (the run is not stopped). */
  wait: 'for-the-turn' | 'limited';
  /** Whether the stream of a send lasts until the turn ends, or only as long as the operator lets it. */
  streamWait: 'for-the-turn' | 'limited';
  /** Whether a message answers a task that waits for approval. */
  approvals: 'by-message' | 'refused';
  /** Whether get, cancel and subscribe find the tasks of the call's agent, or any task of the tenant. */
  taskScope: 'agent' | 'tenant';
  /** Set where callers choose the ids of their tasks: sends, gets and cancels read an id as an alias first. */
  clientTaskIds?: ClientTaskIdRule;
  /** What canceling a canceled task does. */
  cancelAgain: 'refused' | 'returns-it';
  /** Whether the metadata of a cancel is kept on the task. */
  cancelMetadata: 'ignored' | 'kept';
  /**
   * What a subscription begins with: the task as it is now; or the whole log from event 1, and for a task that
   * has ended its Task as the only item. A replay leaves out interruptions that lie in the past.
   */
  subscribe: 'snapshot' | 'replay';
  /** Which states end a stream: those that end the turn, or only terminal ones. */
  streamEnds: 'with-turn' | 'with-task';
  /** Whether get and subscribe read the artifacts of a task. `left-out`: its status is enough, and a task may be large. */
  artifacts: 'read' | 'left-out';
  /** Whether a task's history begins with the earlier tasks of its context (`conversationHistory`). */
  history: 'task' | 'conversation';
  /** How an extended card is refused that the agent's card does not declare. */
  extendedCard: 'unsupported-operation' | 'extended-card-not-configured';
  /** Whether agents have push notifications. */
  push: 'as-declared' | 'refused';
  /** What a push notification config and its members are called. */
  pushFields: PushFields;
}

/** Where the version of a call has the members of a push notification config, as errors name them. */
export interface PushFields {
  /** The config in the params of its own operation; empty = the params are the config. */
  config: string;
  /** The config in the params of a send. */
  inSend: string;
  /** The scheme in `authentication`. */
  scheme: string;
}

/** How a send to an id that the caller has used before is understood (`turnOfAlias`). */
export interface ClientTaskIdRule {
  /** Whether a message equal to the last one joins a task that has ended, or only one that is at work. */
  joins: 'any-task' | 'working-task';
  /** Whether a canceled task is refused, or followed by a new turn like any other that has ended. */
  canceled: 'refused' | 'new-turn';
}

/** The specification's own rules; a profile names only what differs. */
export const SPEC_RULES: OperationRules = {
  reply: 'task-or-message',
  agentThrew: 'error',
  wait: 'for-the-turn',
  streamWait: 'for-the-turn',
  approvals: 'by-message',
  taskScope: 'agent',
  cancelAgain: 'refused',
  cancelMetadata: 'ignored',
  subscribe: 'snapshot',
  streamEnds: 'with-turn',
  artifacts: 'read',
  history: 'task',
  extendedCard: 'unsupported-operation',
  push: 'as-declared',
  pushFields: { config: '', inSend: 'configuration.taskPushNotificationConfig', scheme: 'scheme' },
};
