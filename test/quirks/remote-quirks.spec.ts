import { TaskState } from '@baton/a2a';
import type { AgentOutput } from '../../libs/agents/src/agent-runtime.js';
import { answerIn, Elsewhere, turnAt } from '../support/agents/remote.js';
import { summary } from '../support/agents/turns.js';
import { REMOTE_PEERS, REMOTE_QUIRKS, type RemoteCall, type RemotePeer } from './remote-quirks.js';

const STATES = { completed: TaskState.TASK_STATE_COMPLETED, failed: TaskState.TASK_STATE_FAILED };

const elsewhere = new Elsewhere();
afterEach(() => elsewhere.killAll());
afterAll(() => elsewhere.close());

const METHODS: Record<RemoteCall, { '1.0': string; '0.3': string }> = {
  card: { '1.0': 'card', '0.3': 'card' },
  stream: { '1.0': 'SendStreamingMessage', '0.3': 'message/stream' },
  send: { '1.0': 'SendMessage', '0.3': 'message/send' },
  get: { '1.0': 'GetTask', '0.3': 'tasks/get' },
  subscribe: { '1.0': 'SubscribeToTask', '0.3': 'tasks/resubscribe' },
};
const methodOf = (call: RemoteCall, peer: RemotePeer): string => METHODS[call][REMOTE_PEERS[peer].version];

/** How a turn has ended, and what its caller reads: the reason of a failure, or the reply. */
function endOf(outputs: AgentOutput[]) {
  const last = summary(outputs).at(-1) as { state?: TaskState; text?: string; message?: string };
  if (last.message !== undefined) return { state: TaskState.TASK_STATE_COMPLETED, caller: last.message };
  return { state: last.state, caller: last.text ?? answerIn(outputs) };
}

/** What is read, with the names that a row has for what differs. */
const named = (text: string, host: string): string =>
  text
    .replaceAll(host, '<host>')
    .replace(/ \/a2a[^ ]*/, ' <path>')
    .replace(/method (SendMessage|message\/send)/, 'method <method>');

const CASES = REMOTE_QUIRKS.flatMap((quirk) => quirk.on.map((peer) => ({ ...quirk, peer })));

// The table of docs/agents/provider-behaviour.md.
it.each(CASES)(
  'When a remote agent ($peer) $when, the task is $task',
  async ({ peer, mishaps, says = 'hi', streaming = true, config, task, calls, caller }) => {
    const remote = await elsewhere.start({ ...REMOTE_PEERS[peer], streaming });
    for (const [call, what] of mishaps) remote.spoil(methodOf(call, peer), what);
    const { host } = new URL(remote.url);
    const end = endOf(await elsewhere.run(turnAt(remote.url, says, config)));
    expect({ ...end, caller: named(end.caller, host) }).toEqual({
      state: STATES[task],
      caller,
    });
    const sends = [methodOf('stream', peer), methodOf('send', peer)];
    expect(remote.methods.filter((method) => sends.includes(method))).toHaveLength(calls);
    // The message was taken at most once.
    expect(remote.tasks.length).toBeLessThanOrEqual(1);
  },
);
