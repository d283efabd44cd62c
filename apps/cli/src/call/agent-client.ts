import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client';
import { type Message, type StreamResponse, type Task, TaskState } from '@baton/a2a';
import { SequenceTap } from '../sequence-tap.js';
import { createFetch, type Target } from '../api.js';

export type Payload = NonNullable<StreamResponse['payload']>;

/** One event of a stream, with its position in the task's log if the server sent it. */
export interface NumberedEvent {
  sequence: number | undefined;
  payload: Payload;
}

/** One agent of a server, called with the SDK's own client (A2A 1.0). Every error is an OperatorError or the SDK's. */
export class AgentClient {
  private constructor(
    private readonly client: Client,
    private readonly taps: { current: SequenceTap },
  ) {}

  /** Reads the agent's card and prepares the client for it. */
  static async connect({ url, token }: Target, agent: string): Promise<AgentClient> {
    const taps = { current: new SequenceTap() };
    const fetchImpl = createFetch(token, () => (taps.current = new SequenceTap()));
    const factory = new ClientFactory({
      transports: [new JsonRpcTransportFactory({ fetchImpl })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    });
    const base = new URL(`agents/${encodeURIComponent(agent)}/`, url.endsWith('/') ? url : `${url}/`);
    return new AgentClient(await factory.createFromUrl(base.href), taps);
  }

  /** Send and wait for the end of the turn: the task, or the message if that was the whole answer. */
  send(message: Message): Promise<Task | Message> {
    return this.client.sendMessage({ ...ENVELOPE, message });
  }

  /** Send, and wait only until the message is accepted. */
  async post(message: Message): Promise<void> {
    const configuration = {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      historyLength: 0,
      returnImmediately: true,
    };
    await this.client.sendMessage({ ...ENVELOPE, configuration, message });
  }

  /** Send, and the events up to the end of the turn. */
  stream(message: Message): AsyncGenerator<NumberedEvent> {
    return this.number(this.client.sendMessageStream({ ...ENVELOPE, message }));
  }

  /** The events of a task after a sequence (0 = all of them) up to the end of a turn. */
  subscribe(taskId: string, after: number): AsyncGenerator<NumberedEvent> {
    const serviceParameters = { 'Last-Event-ID': String(after) };
    return this.number(this.client.resubscribeTask({ tenant: '', id: taskId }, { serviceParameters }));
  }

  /** The state of a task as it is now. */
  async stateOf(taskId: string): Promise<TaskState> {
    const { status } = await this.client.getTask({ tenant: '', id: taskId, historyLength: 0 });
    return status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
  }

  private async *number(events: AsyncIterable<StreamResponse>): AsyncGenerator<NumberedEvent> {
    for await (const { payload } of events) {
      const sequence = this.taps.current.next();
      if (payload) yield { sequence, payload };
    }
  }
}

const ENVELOPE = { tenant: '', configuration: undefined, metadata: undefined };

/** The state of the task after a payload, if the payload has one. */
export function stateIn(payload: Payload): TaskState | undefined {
  return payload.$case === 'task' || payload.$case === 'statusUpdate'
    ? payload.value.status?.state
    : undefined;
}
