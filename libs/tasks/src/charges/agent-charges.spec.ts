import type { Agent } from '@baton/a2a';
import type { FullCap, SpendingCharge } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { AgentCharges } from './agent-charges.js';

const RUN = { tenantId: 'tenant-1', taskId: 'task-1', runId: 'run-1' };
const SIGNAL = new AbortController().signal;

function chargesOf({ isCapped = true, caps = [] as FullCap[], fails = false } = {}) {
  const charged: SpendingCharge[] = [];
  const store = {
    charge: (charge: SpendingCharge) => {
      charged.push(charge);
      return fails ? Promise.reject(new Error('no')) : Promise.resolve(caps);
    },
  };
  const limits = { hasSpendingCaps: () => Promise.resolve(isCapped) };
  const environment = { modelPrices: { 'openai/*': { input: 1, output: 2 } }, modelPricesCurrency: 'EUR' };
  const charges = new AgentCharges(store as never, limits, environment, Logger.silent());
  const report = async (usage: unknown) => {
    await charges.chargeReported(RUN, { 'baton.usage': usage });
    return charged.map(({ kind, micros, usageMicros }) => `${kind} ${micros} ${usageMicros}`);
  };
  const start = (price?: object) =>
    charges.chargeTask(RUN, { definition: { price } } as unknown as Agent, SIGNAL);
  return { charged, charges, report, start };
}

describe('what an agent reports at the end of a turn', () => {
  it.each([
    ['its cost', { cost: '0.25', inputTokens: 5 }, ['reported 250000 250000']],
    [
      'its tokens with the price of the model',
      { inputTokens: 10, outputTokens: 5, model: 'openai/m' },
      ['reported 20 0'],
    ],
    ['nothing for a model without a price', { inputTokens: 10, outputTokens: 5, model: 'own/m' }, []],
    ['nothing that Baton has metered', { inputTokens: 10, model: 'openai/m', metered: true }, []],
    [
      'what it has spent besides',
      { cost: '0.5', inputTokens: 10, model: 'openai/m', metered: true },
      ['reported 500000 500000'],
    ],
    [
      'its cost, of which the usage has the priced tokens already',
      { cost: '0.25', inputTokens: 10, outputTokens: 5, model: 'openai/m' },
      ['reported 250000 249980'],
    ],
    ['nothing for a cost that is none', { cost: 'much' }, []],
    ['nothing for what is no usage', 'free', []],
    [
      'only the tokens that are numbers',
      { inputTokens: -1, outputTokens: 5, model: 'openai/m' },
      ['reported 10 0'],
    ],
  ])('is charged: %s', async (_, usage, charged) => {
    expect(await chargesOf().report(usage)).toEqual(charged);
  });

  it('is charged without caps as far as the usage has it not yet, and fails no turn', async () => {
    const free = chargesOf({ isCapped: false });
    expect(await free.report({ inputTokens: 10, model: 'openai/m' })).toEqual([]);
    expect(await free.report({ cost: '1' })).toEqual(['reported 1000000 1000000']);
    expect(await chargesOf({ fails: true }).report({ cost: '1' })).toEqual(['reported 1000000 1000000']);
  });
});

describe('the price of a task', () => {
  it('is charged, if the agent has one', async () => {
    const { start, charged } = chargesOf();
    await start();
    await start({ perTask: '0.02' });
    const charge = { ...RUN, kind: 'task', micros: 20_000, usageMicros: 20_000 };
    expect(charged).toEqual([{ ...charge, isCapped: true }]);
    const free = chargesOf({ isCapped: false });
    await free.start({ perTask: '0.02' });
    expect(free.charged).toEqual([{ ...charge, isCapped: false }]);
  });
});
