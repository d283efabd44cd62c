import { parseAgentDocument } from '@baton/a2a';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { agentSchema, assertConfig } from './runtime-configs.js';

const ROOT = join(__dirname, '../../..');
const FILE = join(ROOT, 'agent.schema.json');
const text = `${JSON.stringify(agentSchema(), null, 2)}\n`;
if (process.env.WRITE_SCHEMA) writeFileSync(FILE, text);

const isValid = new Ajv2020({ strict: false, validateFormats: false }).compile(agentSchema());
const ECHO = { name: 'A', description: 'd', runtime: 'echo' };

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const filesIn = (folder: string, ending: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules/'))
    .map((name) => join(folder, name));

/** Every agent that a page or an example shows whole. */
const shown = [
  ...filesIn('examples/catalog', '.yaml').map((path) => [path, read(path)] as const),
  ...['README.md', ...filesIn('docs', '.md')].flatMap((path) =>
    [...read(path).matchAll(/```yaml\n(.*?)```/gs)].map(([, block = '']) => [path, block] as const),
  ),
].filter(([, block]) => /^runtime: (?!executor)/m.test(block) && /^name: /m.test(block));

describe('the schema of agent files', () => {
  it('is agent.schema.json; if it is not any more, run `npm run schema`', () => {
    expect(readFileSync(FILE, 'utf8')).toBe(text);
  });

  it.each([
    [true, ECHO],
    [true, { ...ECHO, slug: 'a', enabled: false, skills: [{ id: 's', name: 'S', description: 'd' }] }],
    [true, { ...ECHO, runtime: 'executor', config: { module: 'index.js' } }],
    [true, { ...ECHO, retry: { mode: 'restart', attempts: 3 } }],
    [true, { ...ECHO, runtime: 'llm', config: { model: 'openai/gpt-5-mini' } }],
    [false, { ...ECHO, runtime: 'llm' }],
    [false, { ...ECHO, runtime: 'llm', config: { modle: 'openai/gpt-5-mini' } }],
    [false, { ...ECHO, name: '' }],
    [false, { ...ECHO, nmae: 'typo' }],
    [false, { ...ECHO, runtime: 'abacus' }],
    [false, { ...ECHO, config: { loud: true } }],
    [false, { ...ECHO, runtime: 'executor', config: { modul: 'index.js' } }],
    [false, { ...ECHO, retry: { mode: 'none', attempts: 3 } }],
    [false, { name: 'A' }],
  ])('finds it %s that this is one: %j', (valid, file) => {
    expect(isValid(file)).toBe(valid);
  });

  it.each(shown)('and the server take the agent that %s shows', (_path, block) => {
    const file: unknown = parse(block);
    expect({ valid: isValid(file), errors: isValid.errors }).toEqual({ valid: true, errors: null });
    const { definition } = parseAgentDocument(file);
    expect(() => assertConfig(definition)).not.toThrow();
  });
});
