import { endsTurn, isTerminal, TaskState } from '@baton/a2a';
import { UnreachableError } from '../unreachable-error.js';
import type { NumberedEvent } from './agent-client.js';
import { follow } from './follow.js';

const { TASK_STATE_WORKING: WORKING, TASK_STATE_COMPLETED: COMPLETED } = TaskState;
const { TASK_STATE_INPUT_REQUIRED: QUESTION } = TaskState;

const event = (sequence: number | undefined, state = WORKING): NumberedEvent => ({
  sequence,
  payload: {
    $case: 'statusUpdate',
    value: {
      taskId: 't',
      contextId: 'c',
      status: { state, message: undefined, timestamp: undefined },
      metadata: undefined,
    },
  },
});

async function* stream(...items: (NumberedEvent | Error)[]): AsyncGenerator<NumberedEvent> {
  for (const item of items) {
    if (item instanceof Error) throw item;
    yield item;
  }
}

/** A server whose streams are these, one after the other, and whose task is in this state when asked. */
function server(streams: AsyncGenerator<NumberedEvent>[], state = WORKING) {
  const asked: [string, number][] = [];
  const subscribe = (taskId: string, after: number) => {
    asked.push([taskId, after]);
    return streams.shift() ?? stream();
  };
  return { asked, client: { subscribe, stateOf: () => Promise.resolve(state) } };
}

async function sequences(events: AsyncIterable<NumberedEvent>) {
  const seen = [];
  for await (const { sequence } of events) seen.push(sequence);
  return seen;
}

const LOST = new TypeError('terminated');

describe('following a task', () => {
  it('resumes after the last event when the connection is lost, and prints it once', async () => {
    const { asked, client } = server([
      stream(new UnreachableError('away')),
      stream(event(3), event(4, COMPLETED)),
    ]);
    const onLost = jest.fn();
    const first = stream(event(1), event(2), LOST);
    const following = { client, isOver: endsTurn, onLost, pauseMs: 1 };
    expect(await sequences(follow(first, following))).toEqual([1, 2, 3, 4]);
    expect(asked).toEqual([
      ['t', 2],
      ['t', 2],
    ]);
    expect(onLost).toHaveBeenCalledTimes(1);
  });

  it('goes on when the server closes the stream before the end', async () => {
    const { client } = server([stream(), stream(event(2, COMPLETED))]);
    const following = { client, isOver: endsTurn, pauseMs: 1 };
    expect(await sequences(follow(stream(event(1)), following))).toEqual([1, 2]);
  });

  it('ends with the turn when a message was sent, and with the task when it is watched', async () => {
    const { client } = server([stream(event(2, COMPLETED))]);
    const turn = { client, isOver: endsTurn, pauseMs: 1 };
    expect(await sequences(follow(stream(event(1, QUESTION)), turn))).toEqual([1]);
    const task = { client, isOver: isTerminal, pauseMs: 1 };
    expect(await sequences(follow(stream(event(1, QUESTION)), task))).toEqual([1, 2]);
  });

  it('reads the rest of a task that ended during the disconnection', async () => {
    const { client } = server([stream(event(8), event(9, COMPLETED))], COMPLETED);
    const following = { client, isOver: isTerminal, pauseMs: 1 };
    expect(await sequences(follow(stream(), following, { taskId: 't', after: 7 }))).toEqual([8, 9]);
  });

  it('ends when a task has no more events', async () => {
    const { client } = server([], COMPLETED);
    const following = { client, isOver: isTerminal, pauseMs: 1 };
    expect(await sequences(follow(stream(), following, { taskId: 't', after: 9 }))).toEqual([]);
  });

  it('gives up when the server stays away, and at once when it refuses', async () => {
    const away = server(Array.from({ length: 20 }, () => stream(LOST)));
    const following = { client: away.client, isOver: endsTurn, pauseMs: 1 };
    await expect(sequences(follow(stream(event(1), LOST), following))).rejects.toThrow('terminated');
    expect(away.asked).toHaveLength(10);
    const refusing = server([]);
    const refused = { client: refusing.client, isOver: endsTurn, pauseMs: 1 };
    await expect(sequences(follow(stream(event(1), new Error('no')), refused))).rejects.toThrow('no');
    expect(refusing.asked).toEqual([]);
  });

  it('does not resume without a sequence from the server', async () => {
    const { client } = server([stream(event(2))]);
    const following = { client, isOver: endsTurn, pauseMs: 1 };
    await expect(sequences(follow(stream(event(undefined), LOST), following))).rejects.toThrow('terminated');
  });
});
