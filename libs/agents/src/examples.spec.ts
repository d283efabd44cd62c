import { parseAgentDefinition } from '@baton/a2a';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { assertConfig } from './runtime-configs.js';

const FOLDER = join(__dirname, '../../../examples/catalog');
const DOCS = join(__dirname, '../../../docs');

describe('the examples of agents', () => {
  it.each(readdirSync(FOLDER).filter((name) => name.endsWith('.yaml')))('%s can be created', (name) => {
    const definition = parseAgentDefinition(parse(readFileSync(join(FOLDER, name), 'utf8')));
    expect(() => assertConfig(definition)).not.toThrow();
  });

  it('of docs/agents/tools.md have settings that are valid', () => {
    const text = readFileSync(join(DOCS, 'agents/tools.md'), 'utf8');
    const [server, stdio] = [...text.matchAll(/```yaml\n(.*?)```/gs)].map(
      ([, yaml = '']) => parse(yaml) as unknown,
    );
    const { runtime, config } = server as { runtime: string; config: Record<string, unknown> };
    expect(() => assertConfig({ runtime, config })).not.toThrow();
    const withStdio = { ...config, tools: { mcp: stdio } };
    expect(() => assertConfig({ runtime, config: withStdio })).not.toThrow();
  });
});
