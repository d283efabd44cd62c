import { TaskState } from '@baton/a2a';
import { answerIn, Elsewhere, endOf, turnAt } from '../../../../../test/support/agents/remote.js';
import { MemoryJournal, turnSecrets, userMessage } from '../../../../../test/support/agents/turns.js';
import type { AgentOutput } from '../../agent-runtime.js';

const { TASK_STATE_AUTH_REQUIRED: AUTH_REQUIRED, TASK_STATE_COMPLETED: COMPLETED } = TaskState;
const { TASK_STATE_FAILED: FAILED } = TaskState;
const elsewhere = new Elsewhere();

afterEach(() => elsewhere.killAll());
afterAll(() => elsewhere.close());

/** The sign-in of one caller. */
class Caller {
  token: string | undefined;
  /** A guest cannot sign in. */
  canSignIn = true;
  readonly offered: unknown[] = [];

  readonly tokens = {
    noteCall: () => Promise.resolve(this.token !== undefined),
    refuse: () => Promise.resolve(void (this.token = undefined)),
    wider: () => Promise.resolve(undefined),
    offer: (_: unknown, wanted: unknown) => {
      this.offered.push(wanted);
      const link = 'https://baton.example/oauth/sign-in?ticket=1';
      return Promise.resolve(this.canSignIn ? { link, forMs: 3_600_000 } : undefined);
    },
    get: (_: unknown, __: unknown, refused?: string) =>
      Promise.resolve(this.token === refused ? undefined : this.token),
  };

  turnAt(url: string, text: string, config: object = {}, fields: Parameters<typeof turnAt>[3] = {}) {
    const secrets = turnSecrets({}, undefined, this.tokens);
    const journal = new MemoryJournal();
    return turnAt(
      url,
      text,
      { oauth: { credentials: 'perCaller' }, ...config },
      { secrets, journal, ...fields },
    );
  }
}

const sends = (methods: readonly string[]): number =>
  methods.filter((method) => /send.*message|message\/|message:/i.test(method)).length;

describe('an agent elsewhere at which each caller signs in', () => {
  it.each([
    ['1.0', 'JSONRPC'],
    ['1.0', 'HTTP+JSON'],
    ['0.3', 'JSONRPC'],
  ] as const)('gets the message once its caller has signed in (%s, %s)', async (version, binding) => {
    const remote = await elsewhere.start({ version, binding, token: 'sesame' });
    const ada = new Caller();
    const woken: number[] = [];
    const turn = ada.turnAt(remote.url, 'hi');
    turn.log = { ...turn.log, wakeIn: (ms) => void woken.push(ms) };
    const { host } = new URL(remote.url);
    expect(endOf(await elsewhere.run(turn))).toMatchObject({
      state: AUTH_REQUIRED,
      text: expect.stringContaining(
        `The agent needs a sign-in: you are not signed in at ${host}. To sign in, open https://baton.example/oauth/sign-in?ticket=1`,
      ) as string,
    });
    expect(woken).toEqual([3_600_000]);
    expect(remote.asked).toEqual([]);
    ada.token = 'sesame';
    const outputs = await elsewhere.run({ ...turn, attempt: 2 });
    expect([answerIn(outputs), endOf(outputs)]).toEqual(['hi', { state: COMPLETED }]);
    expect(sends(remote.methods)).toBe(1);
  });

  it.each(['again', 'never'])(
    'gets the message again that it has refused with 401 (repeat: %s)',
    async (repeat) => {
      const remote = await elsewhere.start({ token: 'sesame' });
      const ada = new Caller();
      ada.token = 'sesame';
      const turn = ada.turnAt(remote.url, 'hi', { repeat });
      remote.spoil('SendStreamingMessage', 401);
      expect(endOf(await elsewhere.run(turn))).toMatchObject({ state: AUTH_REQUIRED });
      const outputs = await elsewhere.run({ ...turn, attempt: 2 });
      expect([answerIn(outputs), endOf(outputs)]).toEqual(['hi', { state: COMPLETED }]);
      expect(sends(remote.methods)).toBe(2);
    },
  );

  it('goes on with its task while the caller signs in again, and is followed then', async () => {
    const remote = await elsewhere.start({ token: 'sesame' });
    remote.executor.holdAfter(2);
    const ada = new Caller();
    ada.token = 'sesame';
    const turn = ada.turnAt(remote.url, 'count 4');
    const first: AgentOutput[] = [];
    for await (const output of elsewhere.say(turn)) {
      first.push(output);
      if (ada.token === undefined || answerIn(first) !== '1 2 ') continue;
      ada.token = undefined;
      await remote.kill();
      await elsewhere.restart(remote);
    }
    expect(endOf(first)).toMatchObject({ state: AUTH_REQUIRED });
    const next = elsewhere.started.at(-1)!;
    ada.token = 'sesame';
    next.executor.release();
    const second = await elsewhere.run({ ...turn, attempt: 2 });
    expect([answerIn(second), endOf(second)]).toEqual(['1 2 3 4 ', { state: COMPLETED }]);
    const methods = [...remote.methods, ...next.methods];
    expect(sends(methods)).toBe(1);
    expect(methods.filter((method) => /cancel/i.test(method))).toEqual([]);
  });

  it('gets all messages of a caller who has sent another one instead of signing in', async () => {
    const remote = await elsewhere.start({ token: 'sesame' });
    const ada = new Caller();
    const [one, two] = [userMessage('one'), userMessage('two', { messageId: 'm-2' })];
    const turn = ada.turnAt(remote.url, 'one');
    await elsewhere.run(turn);
    await elsewhere.run({ ...turn, attempt: 2 });
    const journal = new (class extends MemoryJournal {
      override read = () => turn.journal.read().then((before) => [...before, ...this.entries]);
    })('run-2');
    ada.token = 'sesame';
    const task = { ...turn.task, history: [one, two] };
    const outputs = await elsewhere.run({ ...turn, runId: 'run-2', message: two, task, journal });
    expect(endOf(outputs)).toEqual({ state: COMPLETED });
    const sent = remote.asked.find(({ params }) => params.message)?.params.message as unknown as {
      parts: object[];
    };
    expect(sent.parts).toMatchObject([{ text: 'one' }, { text: 'two' }]);
  });

  it('is asked for its card by each caller', async () => {
    const remote = await elsewhere.start();
    const runtime = elsewhere.runtime();
    for (const owner of ['token:1', 'token:2', 'token:1']) {
      const caller = new Caller();
      caller.token = owner;
      await elsewhere.run(caller.turnAt(remote.url, 'hi', {}, { owner }), runtime);
    }
    const cards = remote.asked.filter(({ method }) => method === 'card');
    expect(cards.map(({ headers }) => headers.authorization)).toEqual(
      ['token:1', 'token:2', 'token:1'].map((token) => `Bearer ${token}`),
    );
  });

  it('fails for a caller who cannot sign in', async () => {
    const remote = await elsewhere.start({ token: 'sesame' });
    const guest = new Caller();
    guest.canSignIn = false;
    expect(endOf(await elsewhere.run(guest.turnAt(remote.url, 'hi')))).toMatchObject({
      state: FAILED,
      text: expect.stringContaining('this caller cannot sign in') as string,
    });
  });
});
