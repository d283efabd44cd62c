import { parseAgentDefinition, parseAgentDocument, writeAgentDefinition } from './agent-definition.js';
import { ProtocolError } from './protocol-error.js';

const minimal = { name: 'N', description: 'D', runtime: 'executor' };

function fieldsOf(raw: unknown): string[] {
  try {
    parseAgentDefinition(raw);
  } catch (error) {
    const { kind, detail, message } = error as ProtocolError;
    expect(kind).toBe('invalid-params');
    const fields = detail.violations?.map(({ field }) => field) ?? [];
    for (const field of fields) expect(message).toContain(`${field}: `);
    return fields;
  }
  return [];
}

describe('an agent definition', () => {
  it('needs little', () => {
    expect(parseAgentDefinition(minimal)).toEqual({
      ...minimal,
      version: '1.0.0',
      config: {},
      skills: [],
      inputModes: [],
      outputModes: [],
      extensions: [],
    });
  });

  it('may say much', () => {
    const raw = {
      ...minimal,
      version: '2.1.0',
      config: { module: './agent.mjs' },
      skills: [{ id: 's', name: 'S', description: 'd', tags: ['t'] }],
      inputModes: ['text/plain'],
      extensions: [{ uri: 'urn:x', required: true }],
      provider: { organization: 'O', url: 'https://o.example' },
      documentationUrl: 'https://o.example/docs',
      retry: { mode: 'restart', attempts: 5, backoff: { initialMs: 200, factor: 3, maxMs: 5000 } },
      tenants: ['demo'],
    };
    expect(parseAgentDefinition(raw)).toMatchObject({
      ...raw,
      skills: [{ id: 's', examples: [], inputModes: [], securityRequirements: [] }],
      extensions: [{ uri: 'urn:x', description: '', required: true, params: undefined }],
    });
  });

  it.each([
    [undefined, ['agent']],
    ['text', ['agent']],
    [[], ['agent']],
    [{}, ['name', 'description', 'runtime']],
    [{ ...minimal, name: ' ' }, ['name']],
    [{ ...minimal, name: 'x'.repeat(201) }, ['name']],
    [{ ...minimal, description: 'x'.repeat(4_001) }, ['description']],
    [{ ...minimal, skills: [{ id: 's', name: 5, description: 'd' }] }, ['skills[0].name']],
    [{ ...minimal, config: [] }, ['config']],
    [{ ...minimal, provider: { organization: 'O', url: 'nowhere' } }, ['provider.url']],
    [{ ...minimal, iconUrl: 7 }, ['iconUrl']],
    [{ ...minimal, tenants: 'demo' }, ['tenants']],
    [{ ...minimal, retry: { mode: 'sometimes' } }, ['retry.mode']],
    [{ ...minimal, reminders: {} }, ['reminders']],
    [{ ...minimal, reminders: { remindAfterHours: 0 } }, ['reminders.remindAfterHours']],
    [
      { ...minimal, reminders: { remindAfterHours: 2, escalateAfterHours: 2 } },
      ['reminders.escalateAfterHours'],
    ],
    [{ ...minimal, retry: { mode: 'none', attempts: 2 } }, ['retry.attempts']],
    [{ ...minimal, retry: { mode: 'restart', attempts: 11 } }, ['retry.attempts']],
    [{ ...minimal, retry: { mode: 'restart', backoff: { factor: 2 } } }, ['retry.backoff.initialMs']],
    [{ ...minimal, desciption: 'typo' }, ['desciption']],
    [{ ...minimal, documentationUrl: 'javascript:alert(1)' }, ['documentationUrl']],
    [{ ...minimal, iconUrl: 'data:image/svg+xml,<svg/>' }, ['iconUrl']],
    [{ ...minimal, provider: { organization: 'O', url: 'file:///etc/passwd' } }, ['provider.url']],
    [{ ...minimal, extended: { documentationUrl: ' JavaScript:alert(1)' } }, ['extended.documentationUrl']],
    [{ ...minimal, extended: {} }, ['extended']],
    [{ ...minimal, extended: { description: 'd', scopes: ['root'] } }, ['extended.scopes[0]']],
    [
      { ...minimal, extended: { skills: [{ id: 's' }] } },
      ['extended.skills[0].name', 'extended.skills[0].description'],
    ],
  ])('refuses %j at %j', (raw, fields) => {
    expect(fieldsOf(raw)).toEqual(fields);
  });

  it('names the remedy for an unknown key, and for a missing one', () => {
    expect(() => parseAgentDefinition({ ...minimal, desciption: 'typo' })).toThrow(
      'desciption: is not known here: correct its name or take it out',
    );
    expect(() => parseAgentDefinition({ name: 'N', description: 'D' })).toThrow(
      'runtime: is missing: give it a value of type string',
    );
  });
});

describe('an agent file', () => {
  it('has the name of an agent of a catalog, and whether it is enabled', () => {
    const { definition, ...rest } = parseAgentDocument({ ...minimal, slug: 'mine', enabled: false });
    expect(rest).toEqual({ slug: 'mine', enabled: false });
    expect(definition).toEqual(parseAgentDefinition(minimal));
    expect(() => parseAgentDocument({ ...minimal, tenants: ['a'] })).toThrow(
      'tenants: is for installed agents',
    );
  });

  it('of an installed agent does not', () => {
    expect(fieldsOf({ ...minimal, slug: 'mine' })).toEqual(['slug']);
    expect(fieldsOf({ ...minimal, enabled: true })).toEqual(['enabled']);
  });

  it('is written as an author would, and read again it is the same', () => {
    const raw = {
      ...minimal,
      version: '1.0.0',
      config: { deep: { empty: [], none: null } },
      skills: [{ id: 's', name: 'S', description: 'd', tags: ['t'] }],
      extensions: [{ uri: 'urn:x', required: false, params: { a: 1 } }],
      extended: { scopes: ['agents:write'], skills: [{ id: 'e', name: 'E', description: 'd', tags: ['t'] }] },
      a2aEnabled: false,
    };
    const definition = parseAgentDefinition(raw);
    expect(writeAgentDefinition(definition)).toEqual(raw);
    expect(parseAgentDefinition(writeAgentDefinition(definition))).toEqual(definition);
    expect(
      Object.keys(writeAgentDefinition(parseAgentDefinition({ runtime: 'a', description: 'b', name: 'c' }))),
    ).toEqual(['name', 'description', 'version', 'runtime']);
  });

  it('leaves out links with other schemes than http and https, which earlier releases have stored', () => {
    const extended = { description: 'More', skills: [] };
    const stored = {
      ...parseAgentDefinition({ ...minimal, extended, documentationUrl: 'https://o.example/docs' }),
      iconUrl: 'javascript:alert(1)',
      provider: { organization: 'O', url: 'vbscript:x' },
      extended: { ...extended, documentationUrl: 'data:text/html,x' },
    };
    const written = writeAgentDefinition(stored);
    expect(written).toMatchObject({
      documentationUrl: 'https://o.example/docs',
      extended: { description: 'More' },
    });
    expect(JSON.stringify(written)).not.toMatch(/javascript|vbscript|data:/);
    expect(() => parseAgentDefinition(written)).not.toThrow();
  });
});
