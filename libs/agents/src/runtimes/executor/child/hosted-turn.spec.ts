import type { AgentExecutor } from '@a2a-js/sdk/server';
import { plainTextPart } from '../../../agent-runtime.js';
import { firstTurn } from '../../../../../../test/support/agents/turns.js';
import { HostedTurn, type TurnHost } from './hosted-turn.js';
import { type FromAgent, WINDOW } from '../protocol.js';
import { turnRequest } from '../turn-request.js';
import { JournaledSteps } from '../steps/journaled-steps.js';

const CHUNK = 'x'.repeat(100_000);
const MAX_WAITING = 500_000;

/** An event as an author of JavaScript writes it. */
const chunk = (text = CHUNK) =>
  ({
    kind: 'artifactUpdate',
    data: { artifact: { artifactId: 'a', parts: [plainTextPart(text)] } },
  }) as never;

/** A turn whose worker reads on request; what the turn has sent, and the most that has waited. */
async function hosted(
  execute: AgentExecutor['execute'],
  onBlock: (turn: HostedTurn) => void,
  request: object = {},
) {
  const sent: FromAgent[] = [];
  const host: TurnHost = {
    maxEventBytes: 200_000,
    maxUnsentSize: MAX_WAITING,
    createExecutor: () => ({ execute, cancelTask: () => Promise.resolve() }),
    send: (json) => void sent.push(JSON.parse(json) as FromAgent),
    flushSoon: (flushed) => void setImmediate(() => flushed.flush()),
    block: (isOver) => {
      while (isOver()) onBlock(turn);
    },
    onEnd: () => undefined,
  };
  const turn: HostedTurn = new HostedTurn(
    1,
    { ...(await turnRequest(await JournaledSteps.open(firstTurn('hi')))), ...request },
    host,
  );
  return { turn, sent };
}

const sizeOf = (sent: FromAgent[]): number =>
  sent.reduce((sum, message) => sum + (message.type === 'events' ? message.size : 0), 0);

describe('an executor that publishes faster than its worker reads', () => {
  it('is held up in publish(), although it never pauses, and loses nothing', async () => {
    let published = 0;
    let mostAhead = 0;
    let read = 0;
    const { turn, sent } = await hosted(
      async (_, bus) => {
        for (; published < 100; published++) {
          bus.publish(chunk());
          mostAhead = Math.max(mostAhead, published * CHUNK.length - read);
        }
      },
      (blocked) => {
        // The worker reads one message more.
        const unread = sent.filter((message) => message.type === 'events')[0];
        expect(unread).toBeDefined();
        sent.splice(sent.indexOf(unread!), 1);
        const { size } = unread as { size: number };
        read += size;
        blocked.credit(size);
      },
    );
    await turn.run();
    expect(published).toBe(100);
    expect(mostAhead).toBeLessThan(WINDOW + MAX_WAITING + 3 * CHUNK.length);
    turn.credit(Infinity);
    expect(read + sizeOf(sent)).toBeGreaterThan(100 * CHUNK.length);
    expect(sent.at(-1)).toEqual({ type: 'returned', turn: 1 });
  });

  it('goes on at once without a reader', async () => {
    let blocked = 0;
    const { turn, sent } = await hosted(
      async (_, bus) => {
        for (let i = 0; i < 100; i++) bus.publish(chunk());
      },
      (held) => {
        blocked += 1;
        held.close();
      },
    );
    await turn.run();
    expect(blocked).toBe(1);
    expect(sizeOf(sent)).toBeLessThan(WINDOW + MAX_WAITING);
    expect(sent.at(-1)).toEqual({ type: 'returned', turn: 1 });
  });

  it('learns at once that an event is too large to be sent', async () => {
    const { turn, sent } = await hosted(
      async (_, bus) => bus.publish(chunk('x'.repeat(300_000))),
      () => undefined,
    );
    await turn.run();
    expect(sent).toMatchObject([{ type: 'returned', error: { name: 'RangeError' } }]);
  });
});

describe('a turn that is stopped while its process starts', () => {
  it.each(['cancel', 'close'] as const)('does not begin (%s)', async (how) => {
    const execute = jest.fn(() => Promise.resolve());
    const { turn, sent } = await hosted(execute, () => undefined);
    turn[how]();
    await turn.run();
    expect(execute).not.toHaveBeenCalled();
    expect(sent.at(-1)).toEqual({ type: 'returned', turn: 1 });
  });
});

describe('an error of an executor', () => {
  it('is reported within bounds, for every thrown value', async () => {
    const thrown = [new Error('m'.repeat(1e6)), 'text', null, { toString: () => 1 }, Object.create(null)];
    for (const error of thrown) {
      const { turn, sent } = await hosted(
        () => Promise.reject(error as Error),
        () => undefined,
      );
      await turn.run();
      expect(sent).toMatchObject([{ type: 'returned', error: { message: expect.any(String) as string } }]);
      expect(JSON.stringify(sent).length).toBeLessThan(50_000);
    }
  });
});

describe('a turn whose journal says that an attempt has thrown, but not what', () => {
  it('ends with an error of its own, so that no other turn of the process is blamed', async () => {
    const { turn, sent } = await hosted(
      () => Promise.resolve(),
      () => undefined,
      { compensating: { steps: [] } },
    );
    await turn.run();
    expect(sent).toMatchObject([{ type: 'returned', turn: 1, error: { name: 'TypeError' } }]);
  });
});

describe('an executor that activates an extension', () => {
  it('names it in the messages and artifacts that it publishes from then on', async () => {
    const { turn, sent } = await hosted(
      async ({ context }, bus) => {
        bus.publish(chunk('before'));
        context.addActivatedExtension('urn:mine');
        bus.publish(chunk('after'));
        const message = { messageId: 'm', role: 2, parts: [plainTextPart('done')], extensions: ['urn:own'] };
        bus.publish({ kind: 'statusUpdate', data: { status: { state: 3, message } } } as never);
      },
      () => undefined,
    );
    await turn.run();
    turn.flush();
    const events = sent.flatMap((said) => (said.type === 'events' ? said.events : [])) as Json[];
    const [before, after, status] = events;
    expect(before!.artifactUpdate.artifact).not.toHaveProperty('extensions');
    expect(after!.artifactUpdate.artifact.extensions).toEqual(['urn:mine']);
    expect(status!.statusUpdate.status.message.extensions).toEqual(['urn:own', 'urn:mine']);
  });
});

type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire
