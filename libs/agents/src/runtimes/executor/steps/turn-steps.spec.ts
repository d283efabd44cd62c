import { type Message, Role, type Task, TaskState } from '@baton/a2a';
import { Logger } from '@baton/telemetry';
import { AgentEvent, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server';
import { stepsOf } from '../../../author/steps-of.js';
import type { DurableSteps, InputTimeout, StepCall, StepOptions } from '../child/steps.js';
import {
  type AgentOutput,
  type JournalEntry,
  type Turn,
  jsonPart,
  plainTextPart,
} from '../../../agent-runtime.js';
import { Suspension } from '../../../suspension.js';
import { SENT_BY_AGENT } from '../../../approvals.js';
import { type ChildRequest } from '../../../child-tasks.js';
import { ChildRefusal } from '../../../child-refusal.js';
import { stepsToUndo } from '../../../steps-to-undo.js';
import { undoEntry } from '../../../undo-entry.js';
import { converseHere } from '../../../../../../test/support/agents/executors.js';
import {
  MemoryJournal,
  MemoryState,
  agent,
  firstTurn,
  summary,
  turnWith,
  userMessage,
} from '../../../../../../test/support/agents/turns.js';
import type { TurnStepPorts } from './turn-steps.js';
import { STEP_LIMITS } from '../step-protocol.js';

const { TASK_STATE_COMPLETED, TASK_STATE_WORKING, TASK_STATE_INPUT_REQUIRED } = TaskState;

type Code = (steps: DurableSteps, bus: ExecutionEventBus, context: RequestContext) => Promise<unknown>;

const status = (state: TaskState, text: string) =>
  AgentEvent.statusUpdate({
    taskId: 'task-1',
    contextId: 'context-1',
    metadata: undefined,
    status: { state, message: userMessage(text), timestamp: undefined },
  });
const chunk = (text: string, append: boolean) =>
  AgentEvent.artifactUpdate({
    taskId: 'task-1',
    contextId: 'context-1',
    append,
    lastChunk: false,
    metadata: undefined,
    artifact: {
      artifactId: 'a',
      name: 'a',
      description: '',
      parts: [plainTextPart(text)],
      metadata: undefined,
      extensions: [],
    },
  });

/** A task whose attempts share a journal and a log. */
class Bench {
  readonly kept: string[] = [];
  /** After which times the task continues without an answer. */
  readonly wakes: number[] = [];
  readonly messageIds: string[] = [];
  readonly effects: string[] = [];
  /** Events in the log. */
  logged = 0;
  private attempt = 0;

  constructor(readonly journal = new MemoryJournal()) {}

  ports: TurnStepPorts | undefined;
  readonly state = new MemoryState();
  /** Earlier tasks of the context. */
  earlier: Task[] = [];

  /** The next attempt. Yields what it says; what the code returns is said last. */
  async run(
    code: Code,
    { history = [userMessage('hi')], crashAfter = Infinity, metadata = undefined as object | undefined } = {},
  ): Promise<unknown[]> {
    const outputs: AgentOutput[] = [];
    const stop = new AbortController();
    const turn: Turn = {
      ...(history.length === 1 ? firstTurn(history[0]!) : turnWith(history)),
      attempt: ++this.attempt,
      details: { metadata: metadata && { ...metadata }, configuration: undefined },
      journal: this.crashing(crashAfter),
      state: this.state,
      earlierTasks: () => Promise.resolve(this.earlier),
      log: {
        startedAt: this.logged,
        flush: () => Promise.resolve((this.logged = this.base + outputs.length)),
        keepArtifact: (id) => void this.kept.push(id),
        wakeIn: (ms) => void this.wakes.push(ms),
      },
    };
    this.base = this.logged;
    const executor = {
      execute: async (context: RequestContext, bus: ExecutionEventBus) => {
        const value = await code(stepsOf(context), bus, context);
        bus.publish(status(TASK_STATE_COMPLETED, value === undefined ? 'done' : JSON.stringify(value)));
      },
      cancelTask: () => Promise.resolve(),
    };
    try {
      for await (const output of converseHere(executor, turn, stop.signal, Logger.silent(), this.ports)) {
        outputs.push(output);
        if (output.$case === 'statusUpdate')
          this.messageIds.push(output.value.status?.message?.messageId ?? '');
      }
    } finally {
      this.logged = this.base + outputs.length;
    }
    return summary(outputs);
  }
  private base = 0;

  /** The journal until the worker dies. */
  private crashing(after: number) {
    let left = after;
    const { journal } = this;
    const write = (stored: () => Promise<void>): Promise<void> =>
      left-- > 0 ? stored() : Promise.reject(new Error('the worker has died'));
    return {
      read: () => journal.read(),
      append: (value: unknown) => write(() => journal.append(value)),
      noteRemoteCall: () => Promise.resolve(),
      noteCompensable: () => Promise.resolve(),
      restart: (value: unknown) => write(() => journal.restart(value)),
    };
  }

  effect(name: string): string {
    this.effects.push(name);
    return name;
  }
}

const messageOf = (error: unknown): string => (error as Error).message;
const answered = (value: unknown) => ({ state: TASK_STATE_COMPLETED, text: JSON.stringify(value) });
let bench: Bench;
beforeEach(() => (bench = new Bench()));

describe('a step', () => {
  const three: Code = async ({ step }) => [
    await step('one', () => bench.effect('one')),
    await step('two', () => bench.effect('two')),
    await step('three', () => bench.effect('three')),
  ];

  // Each step writes two entries: it begins, it ends.
  it.each([0, 1, 2, 3, 4, 5])(
    'is not run again once it has ended (crash after %i entries)',
    async (crashAfter) => {
      await expect(bench.run(three, { crashAfter })).rejects.toThrow('the worker has died');
      const before = [...bench.effects];
      expect(await bench.run(three)).toEqual([answered(['one', 'two', 'three'])]);
      const finished = before.slice(0, Math.floor(crashAfter / 2));
      for (const name of finished) expect(bench.effects.filter((one) => one === name)).toEqual([name]);
      expect(bench.effects.filter((name) => name === 'three').length).toBe(crashAfter === 5 ? 2 : 1);
    },
  );

  it('gives the same value in every attempt: what JSON makes of it', async () => {
    const code: Code = async ({ step, sleep }) => {
      const value = await step('value', () => ({ at: new Date(0), none: undefined }));
      const nothing: unknown = await step('nothing', (): unknown => undefined);
      await sleep('on', '1h');
      return [value, nothing === undefined];
    };
    await expect(bench.run(code)).rejects.toBeInstanceOf(Suspension);
    setDue(bench.journal);
    expect(await bench.run(code)).toEqual([answered([{ at: '1970-01-01T00:00:00.000Z' }, true])]);
  });

  it('has the same key in every try and every attempt, and another one than each other step', async () => {
    const keys: string[] = [];
    const code: Code = async ({ step }) => {
      for (let i = 0; i < 3; i++) {
        const run = ({ attempt, key }: StepCall): void => {
          keys.push(key);
          if (i === 1 && attempt < 3) throw new Error('again');
        };
        await step('same', run, { backoff: 1 });
      }
    };
    await expect(bench.run(code, { crashAfter: 3 })).rejects.toThrow('died');
    await bench.run(code);
    const [first, second, third] = new Set(keys);
    expect(keys).toEqual([first, second, second, second, third]);
    expect(first).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('may have the name of another, as in a loop', async () => {
    const code: Code = async ({ step }) => {
      let sum = 0;
      for (let i = 1; i <= 4; i++) sum += await step('add', () => Number(bench.effect(String(i))));
      return sum;
    };
    await expect(bench.run(code, { crashAfter: 5 })).rejects.toThrow('died');
    expect(await bench.run(code)).toEqual([answered(10)]);
    expect(bench.effects).toEqual(['1', '2', '3', '3', '4']);
  });

  it('may run beside others, and each keeps its result in its branch', async () => {
    const code: Code = async ({ step, sleep }) => {
      // The first branch gets its result last, so it saves last.
      let release = (): void => undefined;
      const isSaved = new Promise<void>((resolve) => (release = resolve));
      const branch = async (name: string, wait?: Promise<void>) => {
        const got = await step('get', async () => {
          await wait;
          return name;
        });
        return step('save', () => {
          release();
          return bench.effect(`${name} ${got}`);
        });
      };
      const saved = await Promise.all([branch('slow', isSaved), branch('fast')]);
      await sleep('on', '1h');
      return saved;
    };
    await expect(bench.run(code)).rejects.toBeInstanceOf(Suspension);
    setDue(bench.journal);
    expect(await bench.run(code)).toEqual([answered(['slow slow', 'fast fast'])]);
    expect(bench.effects).toEqual(['fast fast', 'slow slow']);
  });

  it('is tried again when it throws, as often as it may, and the last error is final', async () => {
    const code: Code = async ({ step }) => {
      const tries = { attempts: 2, backoff: 1 };
      const failed = await step(
        'fails',
        ({ attempt }) => {
          bench.effect(`try ${attempt}`);
          throw new TypeError('broken');
        },
        tries,
      ).catch((error: unknown) => String(error));
      const never = { attempts: 9, backoff: 1, retryIf: () => false };
      await step('refused', () => Promise.reject(new Error(bench.effect('refused'))), never).catch(
        () => undefined,
      );
      return step('after', () => failed);
    };
    const error = 'StepError: step "fails" failed: TypeError: broken';
    await expect(bench.run(code, { crashAfter: 7 })).rejects.toThrow('died');
    expect(bench.effects).toEqual(['try 1', 'try 2', 'refused']);
    expect(await bench.run(code)).toEqual([answered(error)]);
    expect(bench.effects).toEqual(['try 1', 'try 2', 'refused']);
  });

  it('has the same cause in every attempt, with code and data', async () => {
    const refusal = Object.assign(new RangeError('too many'), { code: 'E429', data: { retryAfter: 3 } });
    const code: Code = async ({ step }) => {
      const { cause } = (await step('fails', () => Promise.reject(refusal), { attempts: 1 }).catch(
        (error: unknown) => error,
      )) as { cause: Error & { code: string; data: unknown } };
      await step('after', () => 1);
      return [cause instanceof Error, cause.name, cause.message, cause.code, cause.data];
    };
    await expect(bench.run(code, { crashAfter: 3 })).rejects.toThrow('died');
    const kept = [true, 'RangeError', 'too many', 'E429', { retryAfter: 3 }];
    expect(await bench.run(code)).toEqual([answered(kept)]);
    expect(await new Bench().run(code)).toEqual([answered(kept)]);
  });

  it.each([
    ['a Map', new Map([['a', 1]]), 'it is of type Map'],
    ['an Error', { failed: [new Error('no')] }, '"0" in it is of type Error'],
    ['no number', { share: Number.NaN }, '"share" in it is NaN'],
  ])('fails when its result is %s, and is not run again', async (_, result, problem) => {
    const code: Code = ({ step }) =>
      step('returns', () => {
        bench.effect('ran');
        return result;
      }).catch(messageOf);
    const [answer] = await bench.run(code);
    const text = expect.stringContaining(JSON.stringify(problem).slice(1, -1)) as string;
    expect(answer).toMatchObject({ text });
    expect(bench.effects).toEqual(['ran']);
  });

  it('fails when it takes longer than it may, although its promise never ends', async () => {
    const code: Code = ({ step }) =>
      step('hangs', () => new Promise(() => undefined), { attempts: 1, timeout: 5 }).catch(messageOf);
    expect(await bench.run(code)).toEqual([
      answered('step "hangs" failed: StepTimeout: no answer within 5 ms'),
    ]);
  });

  it.each([
    [
      'another step before it',
      (steps: DurableSteps) => steps.step('new', () => 1),
      /Step "new" is new, but an earlier attempt began "one" here/,
    ],
    [
      'a step of another kind',
      (steps: DurableSteps) => steps.sleep('one', 1),
      /"one" was a step of kind "run" .* and is "sleep" now/,
    ],
    [
      'the order turned round',
      (steps: DurableSteps) => steps.step('two', () => 1),
      /"two" comes before "one"/,
    ],
    ['an end before it', () => Promise.resolve(), /The code ends, but an earlier attempt began "one" here/],
  ])('parks the run when the code has taken another way: %s', async (_, other, message) => {
    await expect(bench.run(three, { crashAfter: 5 })).rejects.toThrow('died');
    const parked = await bench.run(async (steps) => other(steps)).catch((error: unknown) => error);
    expect(parked).toMatchObject({
      name: 'JournalMismatch',
      agent: 'tester',
      problem: expect.stringMatching(message) as string,
    });
    // Nothing is lost: code that fits continues.
    expect(await bench.run(three)).toEqual([answered(['one', 'two', 'three'])]);
  });

  it('parks the run although its code catches every error, and drops what that code does then', async () => {
    await expect(bench.run(three, { crashAfter: 5 })).rejects.toThrow('died');
    const before = bench.journal.entries.length;
    const code: Code = async ({ step }, bus) => {
      const other = step('other', () => bench.effect('other')).catch(() => 'caught');
      bus.publish(status(TASK_STATE_WORKING, 'goes on'));
      void step('later', () => bench.effect('later'));
      return other;
    };
    await expect(bench.run(code)).rejects.toMatchObject({ name: 'JournalMismatch' });
    expect([bench.effects, bench.logged, bench.journal.entries.length]).toEqual([
      ['one', 'two', 'three'],
      0,
      before,
    ]);
  });

  it('is aborted when a step beside it does not fit, and its end is not stored', async () => {
    const withSecond =
      (second: string): Code =>
      ({ step }) => {
        let begin = (): void => undefined;
        const begun = new Promise<void>((resolve) => (begin = resolve));
        const slow = step('slow', ({ signal }) => {
          begin();
          return new Promise<void>((resolve) => {
            signal.addEventListener('abort', () => resolve(void bench.effect('aborted')));
          });
        });
        const others = step('first', () => 1)
          .then(() => begun)
          .then(() => step(second, () => 2));
        return Promise.all([slow, others]);
      };
    await expect(bench.run(withSecond('second'), { crashAfter: 4 })).rejects.toThrow('died');
    const before = bench.journal.entries.length;
    bench.effects.length = 0;
    await expect(bench.run(withSecond('changed'))).rejects.toMatchObject({ name: 'JournalMismatch' });
    expect(bench.effects).toEqual(['aborted']);
    // It was begun again, as after a crash.
    expect(bench.journal.entries.length).toBe(before + 1);
  });

  it('fails the task when the code throws an error of that name by itself', async () => {
    const own = Object.assign(new Error('mine'), { name: 'JournalMismatch' });
    await expect(bench.run(() => Promise.reject(own))).rejects.toMatchObject({ name: 'AgentError' });
  });
});

describe('a step whose process died while it ran', () => {
  /** The process dies after the effect, and before its result is stored. */
  const dying = (code: Code) => expect(bench.run(code, { crashAfter: 1 })).rejects.toThrow('died');
  const charge = (options: StepOptions): Code => {
    return async ({ step }) => step('charge', ({ key }) => bench.effect(`charged ${key}`), options);
  };
  const decisions = () =>
    bench.journal.entries.flatMap(({ value }) => (value as { decision?: string }).decision ?? []);

  it('is run again with the same key by default', async () => {
    await dying(charge({}));
    const [said] = await bench.run(charge({}));
    expect(bench.effects).toHaveLength(2);
    expect(new Set(bench.effects).size).toBe(1);
    expect(said).toEqual(answered(bench.effects[0]));
    expect(decisions()).toEqual(['repeated']);
  });

  it('ends without a second effect when the author finds the first one', async () => {
    const keys: string[] = [];
    const code = charge({
      verify: ({ key }) => {
        keys.push(key);
        return { done: true, result: 'found' };
      },
    });
    await dying(code);
    expect(await bench.run(code)).toEqual([answered('found')]);
    expect(bench.effects).toEqual([`charged ${keys[0]}`]);
    expect(decisions()).toEqual(['verified']);
  });

  it('is run again when the author does not find the effect', async () => {
    const code = charge({ verify: () => ({ done: false }) });
    await dying(code);
    await bench.run(code);
    expect(bench.effects).toHaveLength(2);
    expect(decisions()).toEqual(['verified']);
  });

  it('is looked for again when the look fails, and is not run meanwhile', async () => {
    let looks = 0;
    const code = charge({
      backoff: 1,
      verify: () => {
        looks += 1;
        if (looks === 1) throw new Error('not now');
        return { done: true };
      },
    });
    await dying(code);
    await bench.run(code);
    expect([looks, bench.effects.length]).toEqual([2, 1]);
  });

  it('is looked for as well after an error, which may come after the effect', async () => {
    const code: Code = async ({ step }) => {
      const lost = (): never => {
        bench.effect('charged');
        throw new Error('the connection broke');
      };
      return step('charge', lost, { backoff: 1, verify: () => ({ done: true, result: 'found' }) });
    };
    expect(await bench.run(code)).toEqual([answered('found')]);
    expect(bench.effects).toEqual(['charged']);
  });

  it('fails with onUnknown `fail`', async () => {
    const code: Code = async ({ step }) =>
      step('charge', () => bench.effect('charged'), { onUnknown: 'fail' }).catch((error: unknown) => [
        (error as Error).name,
        ((error as Error).cause as Error).name,
      ]);
    await dying(code);
    expect(await bench.run(code)).toEqual([answered(['StepError', 'UnknownOutcome'])]);
    expect(bench.effects).toEqual(['charged']);
    expect(decisions()).toEqual(['failed']);
  });

  describe('and with onUnknown `ask`', () => {
    const code: Code = async ({ step }, _bus, { userMessage: first }) => {
      const charge = (): string | undefined => bench.effect('charged');
      return [first.messageId, (await step('charge', charge, { onUnknown: 'ask' })) ?? null];
    };
    const question = userMessage('Was it?', { messageId: 'q', role: 2 });
    const reply = (parts: string | object, fields = {}) =>
      userMessage(typeof parts === 'string' ? parts : [jsonPart(parts)], { messageId: 'm-2', ...fields });
    /** The next turn, with the answer to the question of the one before. */
    const say = async (...answers: ReturnType<typeof reply>[]) => {
      const history = [userMessage('hi'), ...answers.flatMap((answer) => [question, answer])];
      bench = Object.assign(new NextRun(bench), { effects: bench.effects });
      return bench.run(code, { history });
    };

    beforeEach(async () => {
      await dying(code);
      const [asked] = await bench.run(code);
      expect(asked).toMatchObject({ state: TASK_STATE_INPUT_REQUIRED });
      expect((asked as { text: string }).text).toMatch(
        /not known whether the step "charge".* key is [0-9a-f-]{36}/s,
      );
    });

    it.each([
      ['yes', null],
      [{ done: true }, null],
      [{ done: true, result: { id: 7 } }, { id: 7 }],
    ])('takes the answer %j, and does not run it again', async (answer, result) => {
      expect(await say(reply(answer))).toEqual([answered(['m-1', result])]);
      expect(bench.effects).toEqual(['charged']);
      expect(decisions()).toEqual(['asked']);
    });

    it.each(['no', { done: false }])('runs it again after the answer %j', async (answer) => {
      expect(await say(reply(answer))).toEqual([answered(['m-1', 'charged'])]);
      expect(bench.effects).toEqual(['charged', 'charged']);
      expect(decisions()).toEqual(['asked']);
    });

    it.each([
      ['words that are neither', reply('perhaps'), 'That is neither yes nor no.'],
      ['a result of nothing', reply({ done: false, result: 1 }), 'has no result'],
      ['another agent', reply('yes', { metadata: SENT_BY_AGENT }), 'Only a person'],
    ])('asks again after the answer of %s', async (_, answer, problem) => {
      const [asked] = await say(answer);
      expect(asked).toMatchObject({ state: TASK_STATE_INPUT_REQUIRED });
      expect((asked as { text: string }).text).toContain(problem);
      expect(await say(answer, reply('yes', { messageId: 'm-3' }))).toEqual([answered(['m-1', null])]);
      expect(bench.effects).toEqual(['charged']);
    });

    it('asks again when it dies once more', async () => {
      const history = [userMessage('hi'), question, reply('no')];
      const next = new NextRun(bench);
      // The answer and the second beginning are stored.
      await expect(next.run(code, { history, crashAfter: 2 })).rejects.toThrow('died');
      expect(await next.run(code, { history })).toMatchObject([{ state: TASK_STATE_INPUT_REQUIRED }]);
    });
  });
});

describe('the steps of a canceled task', () => {
  let keys: Set<string>;
  let paid: { done: true; result: string } | { done: false } | Error;
  beforeEach(() => {
    keys = new Set();
    paid = { done: true, result: 'money' };
  });
  const undo = (result: unknown, { key }: StepCall) => {
    keys.add(key);
    bench.effect(`undo ${String(result)}`);
  };
  const verify = () => {
    if (paid instanceof Error) throw paid;
    return paid;
  };
  const order: Code = async ({ step }) => {
    await step('book', () => bench.effect('room'), { compensate: undo });
    await step('charge', () => bench.effect('money'), { compensate: undo, verify });
  };
  const withoutVerify: Code = async ({ step }) => {
    await step('book', () => bench.effect('room'), { compensate: undo });
    await step('charge', () => bench.effect('money'), { compensate: undo });
  };

  /** The journal of the task that undoes them. */
  async function cancel(): Promise<void> {
    const outline = bench.journal.entries.map(({ position, runId, value }) => {
      const entry = value as { event: string; execution: number; id: number };
      return { ...entry, position, runId, hasError: 'error' in entry, compensates: 'compensates' in entry };
    });
    await bench.journal.append(undoEntry(stepsToUndo(outline)!, undefined, ''));
  }

  /** The worker dies when the money is paid, and before that is stored. */
  async function cancelInPayment(code: Code): Promise<void> {
    await expect(bench.run(code, { crashAfter: 3 })).rejects.toThrow('died');
    await cancel();
  }

  it.each([0, 1, 2, 3, 4, 5])(
    'are undone once, whenever the process dies (after %i entries)',
    async (crashAfter) => {
      await cancelInPayment(order);
      await expect(bench.run(order, { crashAfter })).rejects.toThrow('died');
      expect(await bench.run(order)).toEqual([
        { state: TASK_STATE_COMPLETED, text: 'Undone: "charge", "book".' },
      ]);
      expect([...new Set(bench.effects)]).toEqual(['room', 'money', 'undo money', 'undo room']);
      expect(keys.size).toBe(2);
    },
  );

  it('are not undone if the code finds that they were not carried out', async () => {
    await cancelInPayment(order);
    paid = { done: false };
    expect(await bench.run(order)).toEqual([{ state: TASK_STATE_COMPLETED, text: 'Undone: "book".' }]);
    expect(bench.effects).toEqual(['room', 'money', 'undo room']);
  });

  it('are named if their outcome is unknown', async () => {
    await cancelInPayment(withoutVerify);
    const text = 'Undone: "book". It is not known whether this was carried out: "charge".';
    expect(await bench.run(withoutVerify)).toEqual([{ state: TASK_STATE_COMPLETED, text }]);
  });

  it('fail the task if the code cannot find out, and are looked for again when it goes on', async () => {
    await cancelInPayment(order);
    paid = new Error('the bank is closed');
    await expect(bench.run(order)).rejects.toThrow(
      'it is not known whether step number 2 was carried out: the bank is closed',
    );
    expect(bench.effects).toEqual(['room', 'money', 'undo room']);
    paid = { done: true, result: 'money' };
    expect(await bench.run(order)).toEqual([
      { state: TASK_STATE_COMPLETED, text: 'Undone: "book", "charge".' },
    ]);
    expect(bench.effects).toEqual(['room', 'money', 'undo room', 'undo money']);
  });

  it('are undone where the code waits for an answer or a time that never comes', async () => {
    const waiting: Code = async (steps, bus) => {
      await steps.step('book', () => bench.effect('room'), { compensate: undo });
      await steps.waitForInput('name', 'Who?');
      bus.publish(chunk('never', false));
    };
    await bench.run(waiting);
    await cancel();
    expect(await bench.run(waiting)).toEqual([{ state: TASK_STATE_COMPLETED, text: 'Undone: "book".' }]);
  });

  it('fail the task if changed code no longer calls them', async () => {
    const both: Code = async ({ step }) => {
      await step('a', () => 'a', { compensate: undo });
      await step('b', () => 'b', { compensate: undo });
      await step('c', () => 'c');
    };
    await expect(bench.run(both, { crashAfter: 4 })).rejects.toThrow('died');
    await cancel();
    const changed: Code = async ({ step }) => {
      await step('a', () => 'a', { compensate: undo });
    };
    await expect(bench.run(changed)).rejects.toThrow('step number 2 is not compensated');
  });
});

describe('a step with a compensation', () => {
  const undo = (result: unknown, { key }: StepCall) => {
    keys.add(key);
    bench.effect(`undo ${String(result)}`);
  };
  let keys: Set<string>;
  let isInStock: boolean;
  beforeEach(() => {
    keys = new Set();
    isInStock = false;
  });
  const order: Code = async ({ step }) => {
    const noted = await step('note', () => bench.effect('note'));
    await step('book', () => bench.effect('room'), { compensate: undo });
    await step('charge', () => bench.effect('money'), { compensate: undo });
    if (!isInStock) throw new RangeError('nothing in stock');
    return noted;
  };

  it('is undone when the code throws: the last one first, with a key of its own', async () => {
    await expect(bench.run(order)).rejects.toThrow('nothing in stock');
    expect(bench.effects).toEqual(['note', 'room', 'money', 'undo money', 'undo room']);
    expect(keys.size).toBe(2);
  });

  it('stays when the code returns', async () => {
    isInStock = true;
    expect(await bench.run(order)).toEqual([answered('note')]);
    expect(bench.effects).toEqual(['note', 'room', 'money']);
  });

  it.each(Array.from({ length: 11 }, (_, entries) => entries))(
    'is undone once, whenever the process dies (after %i entries)',
    async (crashAfter) => {
      await expect(bench.run(order, { crashAfter })).rejects.toThrow('died');
      // Three steps have two entries each. With the next one the code has failed for good.
      isInStock = crashAfter >= 7;
      await expect(bench.run(order)).rejects.toThrow('nothing in stock');
      const undone = bench.effects.filter((name) => name.startsWith('undo'));
      // Only the one that was in flight is made once more.
      expect([...new Set(undone)]).toEqual(['undo money', 'undo room']);
      expect(undone.length).toBe(crashAfter === 8 || crashAfter === 10 ? 3 : 2);
      expect(keys.size).toBe(2);
    },
  );

  it('is undone although another compensation fails, and the author reads which', async () => {
    const broken = { backoff: 1, compensate: () => Promise.reject(new Error('the bank is closed')) };
    const code: Code = async ({ step }) => {
      await step('book', () => 'room', { compensate: undo });
      await step('charge', () => 'money', broken);
      throw new Error('nothing in stock');
    };
    await expect(bench.run(code)).rejects.toThrow(
      /nothing in stock \(step "compensate charge" failed: the bank is closed\)/,
    );
    expect(bench.effects).toEqual(['undo room']);
  });

  it('is undone as well when it ends after the step beside it has failed', async () => {
    const code: Code = async ({ step }) => {
      let fail = (): void => undefined;
      const hasBegun = new Promise<void>((resolve) => (fail = resolve));
      const slow = step(
        'slow',
        async () => {
          fail();
          for (let i = 0; i < 50; i++) await new Promise(setImmediate);
          return bench.effect('slow');
        },
        { compensate: undo },
      );
      const broken = step('broken', () => hasBegun.then(() => Promise.reject(new Error('broken'))), {
        attempts: 1,
      });
      await Promise.all([slow, broken]);
    };
    await expect(bench.run(code)).rejects.toThrow('step "broken" failed: broken');
    expect(bench.effects).toEqual(['slow', 'undo slow']);
  });

  it('is not undone twice where the code catches the error', async () => {
    const code: Code = async ({ step }) => {
      await step('book', () => bench.effect('room'), { compensate: undo });
      const fails = () => Promise.reject(new Error('no'));
      return step('charge', fails, { attempts: 1 }).catch(() => 'without money');
    };
    expect(await bench.run(code)).toEqual([answered('without money')]);
    expect(bench.effects).toEqual(['room']);
  });
});

describe('a patch', () => {
  const before: Code = async ({ step, sleep }) => {
    const one = await step('one', () => bench.effect('one'));
    await sleep('nap', '1h');
    return [one, await step('end', () => bench.effect('end'))];
  };
  const after: Code = async ({ step, sleep, patched }) => {
    const first = (await patched('early')) ? 'new one' : 'one';
    const one = await step(first, () => bench.effect(first));
    await sleep('nap', '1h');
    const more = (await patched('late')) ? [await step('more', () => bench.effect('more'))] : [];
    return [one, ...more, await step('end', () => bench.effect('end'))];
  };

  it('does not touch a task that was beyond it, and is in force for one that was not', async () => {
    await expect(bench.run(before)).rejects.toMatchObject({ name: 'Suspension' });
    setDue(bench.journal, 'nap');
    await expect(bench.run(after, { crashAfter: 5 })).rejects.toThrow('died');
    // It is the same in every attempt.
    expect(await bench.run(after)).toEqual([answered(['one', 'more', 'end'])]);
    expect(bench.effects).toEqual(['one', 'more', 'end']);
  });

  it('is in force for a new task, also when later code no longer asks for it', async () => {
    await expect(bench.run(after)).rejects.toMatchObject({ name: 'Suspension' });
    setDue(bench.journal, 'nap');
    const later: Code = async ({ step, sleep }) => {
      await step('new one', () => bench.effect('again'));
      await sleep('nap', '1h');
      return step('end', () => bench.effect('end'));
    };
    expect(await bench.run(later)).toEqual([answered('end')]);
    expect(bench.effects).toEqual(['new one', 'end']);
  });

  it('has the same answer each time when the code asks in a loop', async () => {
    const loop =
      (isPatched: boolean): Code =>
      async ({ step, patched }) => {
        const said: boolean[] = [];
        for (let i = 0; i < 3; i++) {
          if (isPatched) said.push(await patched('loop'));
          await step('each', () => i);
        }
        return said;
      };
    await expect(bench.run(loop(false), { crashAfter: 3 })).rejects.toThrow('died');
    expect(await bench.run(loop(true))).toEqual([answered([false, false, false])]);
  });
});

describe('events between steps', () => {
  const code: Code = async ({ step }, bus) => {
    bus.publish(chunk('1', false));
    await step('one', () => 1);
    bus.publish(status(TASK_STATE_WORKING, 'one is done'));
    bus.publish(chunk('2', true));
    await step('two', () => 2);
    bus.publish(chunk('3', true));
  };

  it('is not said again by the attempt that replays', async () => {
    // The attempt dies inside step two: its beginning is stored.
    await expect(bench.run(code, { crashAfter: 3 })).rejects.toThrow('died');
    expect(bench.logged).toBe(3);
    expect(await bench.run(code)).toEqual([
      { artifact: 'a', append: true, lastChunk: false, text: '3' },
      { state: TASK_STATE_COMPLETED, text: 'done' },
    ]);
    expect(bench.kept).toEqual(['a', 'a']);
  });

  it('replaces artifacts where the dead attempt has said more than it could store of its steps', async () => {
    await expect(bench.run(code, { crashAfter: 3 })).rejects.toThrow('died');
    bench.logged += 1;
    expect(await bench.run(code)).toMatchObject([
      { artifact: 'a', append: false, text: '1' },
      { artifact: 'a', append: true, text: '2' },
      { artifact: 'a', append: true, text: '3' },
      { state: TASK_STATE_COMPLETED },
    ]);
    expect(bench.kept).toEqual([]);
  });
});

describe('a wait', () => {
  it('suspends the run when it is long, until the first sleep ends, and goes on after it', async () => {
    const code: Code = async ({ step, sleep }) => {
      const first = await Promise.race([
        sleep('long', '2h').then(() => 'long'),
        sleep('short', '1h').then(() => 'short'),
      ]);
      return step('after', () => bench.effect(first));
    };
    const suspension = await bench.run(code).catch((error: unknown) => error);
    expect(suspension).toMatchObject({ name: 'Suspension', taskIds: [] });
    expect((suspension as Suspension).wakeInMs).toBeGreaterThan(3_590_000);
    expect((suspension as Suspension).wakeInMs).toBeLessThanOrEqual(3_600_000);
    setDue(bench.journal, 'short');
    expect(await bench.run(code)).toEqual([answered('short')]);
    expect(bench.effects).toEqual(['short']);
  });

  it('stays where it is when it is short', async () => {
    expect(await bench.run(async ({ sleep }) => sleep('nap', 5))).toEqual([
      { state: TASK_STATE_COMPLETED, text: 'done' },
    ]);
  });

  it('lets steps beside it finish first', async () => {
    const code: Code = async ({ step, sleep }) => {
      const work = step('work', async () => {
        for (let i = 0; i < 20; i++) await new Promise(setImmediate);
        return bench.effect('work');
      });
      await Promise.all([work, sleep('on', '1h')]);
    };
    await expect(bench.run(code)).rejects.toBeInstanceOf(Suspension);
    expect(bench.effects).toEqual(['work']);
  });
});

describe('a question to the caller', () => {
  const code: Code = async ({ step, waitForInput }, bus, { userMessage: asked }) => {
    const first = await step('first', () => bench.effect('first'));
    bus.publish(chunk('before', false));
    const { parts } = await waitForInput('name', 'Your name?');
    const name = parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
    return [asked.messageId, first, name, await step('last', () => bench.effect(`last ${name}`))];
  };
  const question = userMessage('Your name?', { messageId: 'q', role: 2 });
  const answer = userMessage('Ada', { messageId: 'm-2' });

  it('ends the turn, and the answer is its result in the next one', async () => {
    expect(await bench.run(code)).toEqual([
      { artifact: 'a', append: false, lastChunk: false, text: 'before' },
      { state: TASK_STATE_INPUT_REQUIRED, text: 'Your name?' },
    ]);
    const next = new NextRun(bench);
    const history = [userMessage('hi'), question, answer];
    // It dies once more before its last step ends.
    await expect(next.run(code, { history, crashAfter: 2 })).rejects.toThrow('died');
    expect(await next.run(code, { history })).toEqual([answered(['m-1', 'first', 'Ada', 'last Ada'])]);
    expect(bench.effects).toEqual(['first', 'last Ada', 'last Ada']);
  });
});

describe('a question with a time', () => {
  const textOf = ({ parts }: { parts: { content?: unknown }[] }): unknown =>
    (parts[0]?.content as { value: unknown }).value;
  const question = userMessage('Your name?', { messageId: 'q', role: 2 });
  const asks = { state: TASK_STATE_INPUT_REQUIRED, text: 'Your name?' };
  const answerIn = (history: Message[]) => [...history, userMessage('Ada', { messageId: 'm-2' })];

  /** The time has come: the log has the question, and that the task works again. */
  const timeIsOver = (name: string): void => {
    bench.logged += 1;
    setDue(bench.journal, name);
  };

  it.each<[string, Code]>([
    [
      'loses a race with a sleep',
      async ({ waitForInput, sleep }) =>
        Promise.race([
          waitForInput('name', 'Your name?').then(textOf),
          sleep('wait', '1h').then(() => 'nobody'),
        ]),
    ],
    [
      'has a timeout',
      async ({ waitForInput }) =>
        waitForInput('wait', 'Your name?', { timeout: '1h' }).then(textOf, () => 'nobody'),
    ],
  ])('goes on in the same turn when its time is over: one that %s', async (_, wait) => {
    const code: Code = async (steps, bus, context) => {
      bus.publish(chunk('before', false));
      const name = await wait(steps, bus, context);
      return steps.step('after', () => bench.effect(`after ${String(name)}`));
    };
    expect(await bench.run(code)).toEqual([expect.anything(), asks]);
    expect(bench.wakes).toEqual([expect.closeTo(3_600_000, -5)]);
    timeIsOver('wait');
    // What was published before is in the log.
    expect(await bench.run(code)).toEqual([answered('after nobody')]);
    expect(bench.kept).toEqual(['a']);
    expect(bench.effects).toEqual(['after nobody']);
  });

  it('keeps the events before it when it is answered', async () => {
    const code: Code = async ({ waitForInput }, bus) => {
      bus.publish(chunk('before', false));
      return textOf(await waitForInput('name', 'Your name?'));
    };
    expect(await bench.run(code)).toEqual([expect.anything(), asks]);
    const next = new NextRun(bench);
    // The caller's message is in the log, too.
    next.logged += 1;
    const history = answerIn([userMessage('hi'), question]);
    expect(await next.run(code, { history })).toEqual([answered('Ada')]);
    expect(next.kept).toEqual(['a']);
  });

  it('is answered by the message of the next turn, if that comes first', async () => {
    const code: Code = async ({ waitForInput }) => textOf(await waitForInput('name', '?', { timeout: '1h' }));
    await bench.run(code);
    setDue(bench.journal);
    const history = answerIn([userMessage('hi'), question]);
    expect(await new NextRun(bench).run(code, { history })).toEqual([answered('Ada')]);
  });

  it('rejects with an InputTimeout, and with the same one in every attempt', async () => {
    const code: Code = async ({ step, waitForInput }) => {
      const error = (await waitForInput('name', '?', { timeout: '1h' }).catch(
        (thrown: unknown) => thrown,
      )) as InputTimeout;
      await step('after', () => 1);
      return [error.name, error.code, error.step, error.message];
    };
    await bench.run(code);
    timeIsOver('name');
    await expect(bench.run(code, { crashAfter: 2 })).rejects.toThrow('died');
    expect(await bench.run(code)).toEqual([
      answered([
        'InputTimeout',
        'INPUT_TIMEOUT',
        'name',
        'step "name" failed: InputTimeout: no answer came in time',
      ]),
    ]);
  });

  it('is asked again after a reminder, with another message, and its answer ends it', async () => {
    const code: Code = async ({ waitForInput, sleep }, bus) => {
      const answer = waitForInput('name', 'Your name?').then(textOf);
      for (let i = 1; ; i++) {
        const said = await Promise.race([answer, sleep(`remind ${i}`, '1h')]);
        if (said !== undefined) return said;
        bus.publish(status(TASK_STATE_WORKING, `reminder ${i}`));
      }
    };
    await bench.run(code);
    timeIsOver('remind 1');
    expect(await bench.run(code)).toEqual([{ state: TASK_STATE_WORKING, text: 'reminder 1' }, asks]);
    expect(new Set(bench.messageIds).size).toBe(3);
    expect(bench.wakes.length).toBe(2);
    const history = answerIn([userMessage('hi'), question, question]);
    expect(await new NextRun(bench).run(code, { history })).toEqual([answered('Ada')]);
  });

  it('leaves the next answer to the question that is asked after it', async () => {
    const code: Code = async ({ waitForInput, sleep }) => {
      const first = waitForInput('first', 'First?').then(textOf);
      const early = await Promise.race([first, sleep('wait', '1h')]);
      return [early, textOf(await waitForInput('second', 'Second?'))];
    };
    await bench.run(code);
    timeIsOver('wait');
    expect(await bench.run(code)).toEqual([{ state: TASK_STATE_INPUT_REQUIRED, text: 'Second?' }]);
    const history = answerIn([userMessage('hi'), question, question]);
    expect(await new NextRun(bench).run(code, { history })).toEqual([answered([null, 'Ada'])]);
  });

  it('is over when the code ends the turn with a question of its own', async () => {
    const code: Code = async ({ waitForInput, sleep }, bus, { userMessage: asked }) => {
      if (asked.messageId === 'm-2') return 'a new execution';
      await Promise.race([waitForInput('name', '?'), sleep('wait', '1h')]);
      bus.publish(status(TASK_STATE_INPUT_REQUIRED, 'Shall I go on?'));
      return undefined;
    };
    await bench.run(code);
    timeIsOver('wait');
    await bench.run(code);
    const history = answerIn([userMessage('hi'), question, question]);
    expect(await new NextRun(bench).run(code, { history })).toEqual([answered('a new execution')]);
  });
});

describe('an agent that begins anew', () => {
  /** As many steps as one execution may have, again and again. */
  const endless =
    (until: number): Code =>
    async ({ step, continueAs, lastState = 0 }, bus) => {
      let sum = lastState as number;
      for (let i = 0; i < STEP_LIMITS.steps; i++) sum += await step('add', () => 1);
      bus.publish(chunk(`${sum} `, sum > STEP_LIMITS.steps));
      return sum < until ? continueAs(sum) : sum;
    };

  it('has as many steps as it likes, and its journal stays small', async () => {
    const outputs = await bench.run(endless(3_000));
    expect(outputs).toMatchObject([{ text: '1000 ' }, { text: '2000 ' }, { text: '3000 ' }, answered(3_000)]);
    expect(bench.journal.entries.length).toBeLessThanOrEqual(2 * STEP_LIMITS.steps + 1);
  });

  // An execution writes 2,000 entries, and one when it begins anew.
  it.each([1_999, 2_000, 2_001, 2_500, 4_001, 4_002])(
    'goes on where it was after a crash (after %i entries)',
    async (crashAfter) => {
      await expect(bench.run(endless(3_000), { crashAfter })).rejects.toThrow('the worker has died');
      expect((await bench.run(endless(3_000))).at(-1)).toEqual(answered(3_000));
    },
  );

  it('does not say again what executions before the last one have said', async () => {
    const code: Code = async ({ step, continueAs, lastState = 1 }, bus) => {
      const n = lastState as number;
      bus.publish(chunk(`${n} `, n > 1));
      bus.publish(status(TASK_STATE_WORKING, `execution ${n}`));
      await step('work', () => bench.effect(`work ${n}`));
      return n < 3 ? continueAs(n + 1) : n;
    };
    // It dies in the second execution, when its step has begun.
    await expect(bench.run(code, { crashAfter: 4 })).rejects.toThrow('died');
    expect(await bench.run(code)).toEqual([
      { artifact: 'a', append: true, lastChunk: false, text: '3 ' },
      { state: TASK_STATE_WORKING, text: 'execution 3' },
      answered(3),
    ]);
    expect(bench.kept).toEqual(['a']);
    expect(bench.effects).toEqual(['work 1', 'work 2', 'work 2', 'work 3']);
  });

  it('has the first message and its request in each execution, and asks in any of them', async () => {
    const code: Code = async ({ continueAs, lastState, waitForInput }, _bus, context) => {
      const said = [context.userMessage.messageId, context.request.metadata, lastState];
      if (lastState === undefined) return continueAs({ at: new Date(0) });
      const { messageId } = await waitForInput('name', 'Your name?');
      return [said, messageId];
    };
    expect(await bench.run(code, { metadata: { turn: 'first' } })).toMatchObject([{ text: 'Your name?' }]);
    const question = userMessage('Your name?', { messageId: 'q', role: 2 });
    const history = [userMessage('hi'), question, userMessage('Ada', { messageId: 'm-2' })];
    const said = ['m-1', { turn: 'first' }, { at: '1970-01-01T00:00:00.000Z' }];
    expect(await new NextRun(bench).run(code, { history })).toEqual([answered([said, 'm-2'])]);
  });

  it.each<[string, Code, string]>([
    ['a state that is no JSON', ({ continueAs }) => continueAs(1n), 'must be a JSON value'],
    [
      'a state that is too large',
      ({ continueAs }) => continueAs('x'.repeat(300_000)),
      'at most 262144 bytes',
    ],
    [
      'a step that runs',
      async ({ step, continueAs }) => {
        void step('hangs', () => new Promise(() => undefined));
        return continueAs(1);
      },
      'must not be called while a step runs',
    ],
  ])('gets an error for a wrong use: %s', async (_, code, message) => {
    await expect(bench.run(code)).rejects.toThrow(message);
  });

  it('leaves waits that were lost in a race', async () => {
    const code: Code = async ({ waitForInput, sleep, step, continueAs, lastState }) => {
      if (lastState !== undefined) return step('after', () => lastState);
      await Promise.race([waitForInput('name', '?'), sleep('wait', '1h')]);
      return continueAs('nobody');
    };
    await bench.run(code);
    bench.logged += 1;
    setDue(bench.journal);
    expect(await bench.run(code)).toEqual([answered('nobody')]);
  });
});

describe('the members of the first request beside its message', () => {
  it('are the same when the code runs again with an answer', async () => {
    const code: Code = async ({ waitForInput }, _bus, { request }) => {
      await waitForInput('name', 'Your name?');
      return request.metadata;
    };
    await bench.run(code, { metadata: { turn: 'first' } });
    const question = userMessage('Your name?', { messageId: 'q', role: 2 });
    const history = [userMessage('hi'), question, userMessage('Ada', { messageId: 'm-2' })];
    const said = await new NextRun(bench).run(code, { history, metadata: { turn: 'second' } });
    expect(said).toEqual([{ state: TASK_STATE_COMPLETED, text: '{"turn":"first"}' }]);
  });

  it('is with the answer what the request of the answer said, also after a crash', async () => {
    const code: Code = async ({ step, waitForInput }, _bus, { request }) => {
      const answer = await waitForInput('name', 'Your name?');
      await step('last', () => bench.effect('last'));
      return [request.metadata, answer.request.metadata, answer.parts.length];
    };
    await bench.run(code, { metadata: { turn: 'first' } });
    const question = userMessage('Your name?', { messageId: 'q', role: 2 });
    const history = [userMessage('hi'), question, userMessage('Ada', { messageId: 'm-2' })];
    const next = new NextRun(bench);
    const turn = { history, metadata: { turn: 'second' } };
    await expect(next.run(code, { ...turn, crashAfter: 2 })).rejects.toThrow('died');
    expect(await next.run(code, turn)).toEqual([answered([{ turn: 'first' }, { turn: 'second' }, 1])]);
  });
});

describe('the state of the context', () => {
  const code: Code = async ({ contextState: state, step }) => {
    const before = await state.get('count');
    const set = await state.set('count', { n: before.version + 1 }, { version: before.version });
    const late = await state.set('count', 'late', { version: before.version });
    await step('on', () => undefined);
    return [before, set, late];
  };

  // Each use writes two entries.
  it.each([0, 1, 2, 3, 4, 5, 6, 7])(
    'is the same in every attempt, and written once (crash after %i entries)',
    async (crashAfter) => {
      await expect(bench.run(code, { crashAfter })).rejects.toThrow('the worker has died');
      const kept = { version: 1, value: { n: 1 } };
      expect(await bench.run(code)).toEqual([
        answered([{ version: 0 }, { isSet: true, version: 1 }, { isSet: false, ...kept }]),
      ]);
      expect(await bench.state.read('count')).toMatchObject({ value: '{"n":1}', version: 1 });
    },
  );

  it('refuses wrong keys, values and versions in the process, without the worker', async () => {
    const uses: ((steps: DurableSteps) => Promise<unknown>)[] = [
      ({ contextState: state }) => state.get(''),
      ({ contextState: state }) => state.get('x'.repeat(129)),
      ({ contextState: state }) => state.get('a\nb'),
      ({ contextState: state }) => state.set('a', undefined),
      ({ contextState: state }) => state.set('a', 'x'.repeat(17_000)),
      ({ contextState: state }) => state.set('a', 1, { version: -1 }),
    ];
    const all: Code = async (steps) => {
      const said: string[] = [];
      for (const use of uses) said.push(await use(steps).then(() => 'fine', messageOf));
      return [said, await steps.contextState.set('a', 1)];
    };
    const [{ text }] = (await bench.run(all)) as [{ text: string }];
    const [said, set] = JSON.parse(text) as [string[], unknown];
    expect(said).not.toContain('fine');
    expect(set).toEqual({ isSet: true, version: 1 });
  });
});

describe('the history of the context', () => {
  const said = (messageId: string, role: Role, text: string): Message => ({
    ...userMessage(text),
    messageId,
    role,
  });

  it('is the content of earlier tasks and turns, the same in every attempt', async () => {
    const { task } = firstTurn('x');
    const { ROLE_USER, ROLE_AGENT } = Role;
    const status = {
      state: TASK_STATE_COMPLETED,
      message: said('m-9', ROLE_AGENT, 'done'),
      timestamp: undefined,
    };
    const earlier = { ...task, id: 'task-0', history: [said('m-8', ROLE_USER, 'first')], status };
    bench.earlier = [earlier, { ...earlier, id: 'task-x', contextId: 'another' }];
    const code: Code = async ({ history, step }) => {
      const messages = await history();
      await step('on', () => undefined);
      return messages;
    };
    const history = [
      said('m-2', ROLE_USER, 'second'),
      said('m-3', ROLE_AGENT, 'which?'),
      said('m-1', ROLE_USER, 'that'),
    ];
    await expect(bench.run(code, { history, crashAfter: 3 })).rejects.toThrow('died');
    bench.earlier = [];
    expect(await bench.run(code, { history })).toEqual([
      answered([
        { role: 'user', content: 'first' },
        { role: 'assistant', content: 'done' },
        { role: 'user', content: 'second' },
        { role: 'assistant', content: 'which?' },
      ]),
    ]);
  });
});

describe('a call of another agent', () => {
  const code: Code = async ({ callAgent, step }) => {
    const reply = await callAgent('ask', 'helper', 'help me', { data: { a: 1 } }).catch(messageOf);
    return step('after', () => reply);
  };
  const helper = (child: (request: ChildRequest) => unknown): TurnStepPorts => ({
    agents: { find: (_, slug) => Promise.resolve(slug === 'helper' ? agent('helper') : undefined) },
    children: { call: (_, request) => Promise.resolve(child(request) as never) },
    limits: { depth: 5, tasks: 50 },
    models: undefined as never,
    tools: { use: undefined as never, pollTask: undefined as never, close: () => Promise.resolve() },
  });
  const childIn = (state: TaskState, text: string) => ({
    depth: 1,
    isAtWork: state === TASK_STATE_WORKING,
    task: {
      ...firstTurn('x').task,
      id: 'child-1',
      status: { state, message: userMessage(text), timestamp: undefined },
    },
  });

  it('is a child of the task: the run is suspended until it ends, and its reply is the result', async () => {
    const requests: ChildRequest[] = [];
    let state = TASK_STATE_WORKING;
    bench.ports = helper((request) => {
      requests.push(request);
      return childIn(state, 'I helped');
    });
    await expect(bench.run(code)).rejects.toMatchObject({
      name: 'Suspension',
      taskIds: ['child-1'],
      wakeInMs: undefined,
    });
    state = TASK_STATE_COMPLETED;
    const reply = { taskId: 'child-1', state: 'completed', content: 'I helped' };
    expect(await bench.run(code)).toEqual([answered(reply)]);
    expect(requests.map(({ callId, lane, message, data }) => ({ callId, lane, message, data }))).toEqual(
      Array(2).fill({ callId: 'step-1-1', lane: 1, message: 'help me', data: { a: 1 } }),
    );
  });

  it.each([
    [
      'asks',
      () => childIn(TASK_STATE_INPUT_REQUIRED, 'Which?'),
      { taskId: 'child-1', state: 'input-required', content: 'Which?' },
    ],
    ['fails', () => childIn(TaskState.TASK_STATE_FAILED, 'no'), 'step "ask" failed: helper has failed: no'],
    [
      'is called in a circle',
      () => {
        throw new ChildRefusal('helper is already working on this');
      },
      'step "ask" failed: helper is already working on this',
    ],
  ])('tells the code when the agent %s', async (_, child, reply) => {
    bench.ports = helper(child);
    expect(await bench.run(code)).toEqual([answered(reply)]);
  });

  it('fails for an agent that is not there', async () => {
    bench.ports = helper(() => undefined);
    expect(await bench.run(({ callAgent }) => callAgent('x', 'nobody', 'hi').catch(messageOf))).toEqual([
      answered('step "x" failed: There is no agent "nobody".'),
    ]);
  });
});

describe('hostile code', () => {
  it.each<[string, Code, RegExp]>([
    ['a name of 1 MB', ({ step }) => step('x'.repeat(1e6), () => 1), /name of a step must be/],
    ['no name', ({ step }) => step(undefined as never, () => 1), /name of a step must be/],
    [
      'a huge result',
      ({ step }) => step('big', () => 'x'.repeat(STEP_LIMITS.resultBytes)),
      /at most 262144 bytes of JSON/,
    ],
    ['a result that is no JSON', ({ step }) => step('big', () => 1n), /must be a JSON value/],
    [
      '100,000 steps one after another',
      async ({ step }) => {
        for (let i = 0; i < 1e5; i++) await step('x', () => i);
      },
      /at most 1000 steps/,
    ],
    [
      '10,000 steps at once',
      async ({ step }) => Promise.all(Array.from({ length: 1e4 }, () => step('x', () => 1))),
      /at most 1000 steps/,
    ],
    ['a sleep of ten years', ({ sleep }) => sleep('x', '3650d'), /at most a year/],
    [
      'results that are too much together',
      async ({ step }) => {
        for (let i = 0; i < 100; i++) await step('x', () => 'x'.repeat(200_000));
      },
      /more than 8388608 bytes/,
    ],
  ])('gets an error that names its bounds: %s', async (_, code, message) => {
    await expect(bench.run(code)).rejects.toThrow(message);
    expect(JSON.stringify(bench.journal.entries).length).toBeLessThan(9e6);
  });
});

/** The run of the next message. It shares the journal of the task. */
class NextRun extends Bench {
  constructor(before: Bench) {
    super(new MemoryJournal('run-m-2'));
    this.journal.entries.push(
      ...before.journal.entries.map((entry): JournalEntry => ({ ...entry, runId: 'run-before' })),
    );
    this.logged = before.logged;
  }
}

/** Lets sleeps end: all, or that of a name. */
function setDue({ entries }: MemoryJournal, name?: string): void {
  for (const { value } of entries as { value: { until?: number; name?: string } }[]) {
    if (value.until !== undefined && (name === undefined || value.name === name)) value.until = 0;
  }
}
