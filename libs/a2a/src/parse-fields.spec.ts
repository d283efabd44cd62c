import { z } from 'zod';
import type { ProtocolError } from './protocol-error.js';
import { parseFields } from './parse-fields.js';

const server = z.union([
  z.strictObject({ command: z.string(), args: z.array(z.string()).optional() }),
  z.strictObject({ url: z.url(), transport: z.enum(['http', 'sse']).optional() }),
]);
const config = z.strictObject({
  tools: z.strictObject({ mcp: z.array(server) }),
  memory: z.union([z.literal('off'), z.strictObject({ turns: z.number() })]).optional(),
});

function violations(raw: unknown): Record<string, string> {
  try {
    parseFields(config, raw, 'config');
  } catch (error) {
    return Object.fromEntries(
      ((error as ProtocolError).detail.violations ?? []).map(({ field, description }) => [
        field,
        description,
      ]),
    );
  }
  return {};
}
const mcp = (...servers: unknown[]) => ({ tools: { mcp: servers } });

describe('the error of a value that a person wrote', () => {
  it('is named by its whole path, each fault for itself', () => {
    expect(violations({ ...mcp({ url: 'https://a.example' }), tool: 1, model: 2 })).toEqual({
      'config.tool': expect.stringContaining('correct its name or take it out'),
      'config.model': expect.stringContaining('correct its name or take it out'),
    });
    expect(violations({})).toEqual({ 'config.tools': 'is missing: give it a value of type object' });
    expect(violations(7)).toEqual({ config: expect.stringContaining('expected object') });
  });

  it('is short for any number of wrong fields', () => {
    const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`name-${n}`, n]));
    const messageFor = (raw: unknown): string => {
      try {
        parseFields(config, raw, 'config');
      } catch (error) {
        return (error as ProtocolError).message;
      }
      return '';
    };
    expect(Object.keys(violations({ ...mcp(), ...many }))).toHaveLength(20);
    expect(messageFor({ ...mcp(), ...many })).toMatch(/^config\.name-0: .*; and 2980 more$/);
    expect(messageFor({ ...mcp(), ['x'.repeat(300_000)]: 1 })).toMatch(/^config\.x{193}…: is not known here/);
  });

  it('is judged by the form that its author meant where there are several', () => {
    expect(Object.keys(violations(mcp({ url: 'https://a.example', transport: 'ftp' })))).toEqual([
      'config.tools.mcp[0].transport',
    ]);
    expect(Object.keys(violations(mcp({ command: 'x' }, { command: 'x', args: [1] })))).toEqual([
      'config.tools.mcp[1].args[0]',
    ]);
    expect(Object.keys(violations({ ...mcp(), memory: { turns: 'many' } }))).toEqual(['config.memory.turns']);
  });
});
