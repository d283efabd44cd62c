import { Ajv2020 } from 'ajv/dist/2020.js';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { agentSchema } from './agent-schema.js';

const FILE = join(__dirname, '../../../agent.schema.json');
const text = `${JSON.stringify(agentSchema(), null, 2)}\n`;
if (process.env.WRITE_SCHEMA) writeFileSync(FILE, text);

const isValid = new Ajv2020({ strict: false, validateFormats: false }).compile(agentSchema());
const ECHO = { name: 'A', description: 'd', runtime: 'echo' };

describe('the schema of agent files', () => {
  it.each([
    [true, ECHO],
    [true, { ...ECHO, slug: 'a', enabled: false, skills: [{ id: 's', name: 'S', description: 'd' }] }],
    [true, { ...ECHO, runtime: 'executor', config: { module: 'index.js' } }],
    [true, { ...ECHO, retry: { mode: 'restart', attempts: 3 } }],
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
});
