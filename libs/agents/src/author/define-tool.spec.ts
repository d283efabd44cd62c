import { z } from 'zod';
import { defineTool } from './define-tool.js';

const CALL = {
  key: 'k',
  taskId: 't',
  contextId: 'c',
  tenant: 'acme',
  signal: new AbortController().signal,
  secret: (name: string) => Promise.resolve(`secret ${name}`),
};

it('gives a function the type of its zod schema, and can be called in a test without a server', async () => {
  const tool = defineTool({
    description: 'Pays',
    inputSchema: z.object({ amount: z.number(), currency: z.string().default('CHF') }),
    execute: async ({ amount, currency }, { secret }) => {
      // They are no `unknown`.
      const sum: number = amount + 1;
      return `${sum} ${currency.toLowerCase()} ${await secret('bank')}`;
    },
  });
  expect(await tool.execute({ amount: 1, currency: 'EUR' }, CALL)).toBe('2 eur secret bank');
});

it('takes a JSON schema, with an input of any members', () => {
  const tool = defineTool({
    description: 'Says it again',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
    execute: ({ text }) => text,
  });
  expect(tool.execute({ text: 'hi' }, CALL)).toBe('hi');
});
