import fc from 'fast-check';
import type { HttpCase } from './http-cases.js';
import { cron, hostileChanges, objectSchema, pattern } from './hostile-values.js';
import { oddText } from './junk.js';
import { type Mutation, mutate } from './mutate.js';

/** A request by which a tenant sets something. */
export interface SettingsCase extends HttpCase {
  kind: 'agent' | 'schedule' | 'secret' | 'other';
  /** Nothing is kept of it. */
  isDry: boolean;
}

/** Where the agents of settings find a model, an MCP server and an agent that do what they should. */
export interface Peers {
  model: string;
  tools: string;
  card: string;
}

const SHORT = { timeout: '5s', stall: '2s' };

/** Definitions that use every member which there is. */
const agents = ({ model, tools, card }: Peers): fc.Arbitrary<object> => {
  const common = {
    name: 'Fuzzed',
    description: 'Is fuzzed',
    version: '1.0.0',
    enabled: true,
    a2aEnabled: true,
    skills: [
      { id: 's', name: 's', description: 's', tags: ['t'], examples: ['e'], inputModes: ['text/plain'] },
    ],
    inputModes: ['text/plain'],
    outputModes: ['application/json'],
    extensions: [{ uri: 'urn:a', description: 'a', required: false, params: { a: 1 } }],
    provider: { organization: 'o', url: 'https://o.example' },
    documentationUrl: 'https://o.example/d',
    iconUrl: 'https://o.example/i',
    retry: { mode: 'restart', attempts: 2, backoff: { initialMs: 1, factor: 1, maxMs: 1 } },
    idempotencyHours: 1,
    reminders: { remindAfterHours: 1, escalateAfterHours: 2 },
  };
  const server = {
    name: 'desk',
    url: tools,
    headers: { 'x-key': { secret: 'openai', prefix: 'k ' }, 'x-a': 'b' },
    allow: ['look*'],
    neverRepeat: ['*'],
    optional: true,
    connectTimeout: '2s',
    timeout: '2s',
    resultLimit: 1_000,
  };
  const llm = fc.record({ schema: objectSchema, pattern, hasSchema: fc.boolean() }).map((drawn) => ({
    ...common,
    runtime: 'llm',
    config: {
      model: 'openai-compatible/m',
      baseUrl: model,
      key: 'openai',
      prompt: 'You are {{name}}.',
      steps: 3,
      temperature: 1,
      topP: 0.5,
      maxOutputTokens: 100,
      reasoning: 'low',
      memory: { turns: 2, tokens: 100 },
      budget: { tokens: 100_000 },
      ...SHORT,
      firstToken: '2s',
      retries: 0,
      delegation: { depth: 2, tasks: 2 },
      ...(drawn.hasSchema && { output: { schema: drawn.schema } }),
      agents: [{ agent: 'echo', description: drawn.pattern }],
      tools: { mcp: [server] },
    },
  }));
  const remote = {
    ...common,
    runtime: 'remote-a2a',
    config: {
      card,
      headers: { authorization: { secret: 'openai', prefix: 'Bearer ' } },
      origins: ['https://a.example'],
      version: '1.0',
      binding: 'JSONRPC',
      extensions: ['urn:a'],
      forward: { metadata: true, extensions: false },
      repeat: 'never',
      ...SHORT,
      reconnect: '1s',
    },
  };
  const others = ['echo', 'index', 'executor', 'nothing'].map((runtime) => ({
    ...common,
    runtime,
    config: {},
  }));
  return fc.oneof(
    { weight: 5, arbitrary: llm },
    { weight: 2, arbitrary: fc.constant(remote) },
    { weight: 2, arbitrary: fc.constantFrom(...others) },
  );
};

const schedules: fc.Arbitrary<object> = fc
  .record({ cron, isOnce: fc.boolean(), name: fc.nat(1e9) })
  .map((drawn) => ({
    name: `fuzz-${drawn.name}`,
    agent: 'echo',
    message: { parts: [{ text: 'x' }], metadata: { a: 1 } },
    ...(drawn.isOnce ? { at: '2199-01-31T08:00:00+01:00' } : { cron: drawn.cron }),
    time_zone: 'Europe/Berlin',
    overlap: 'skip',
    missed: 'skip',
    context: 'same',
    paused: true,
    starts_at: '2190-01-01T00:00:00Z',
    ends_at: '2200-01-01T00:00:00Z',
    max_count: 3,
  }));

type Drawn = Pick<SettingsCase, 'kind' | 'method' | 'path' | 'isDry'> & { whole: unknown };

/** What is there before the run, so that it can be changed: an agent and a schedule of this name. */
export const STANDING = 'standing';

/** What tenants write by HTTP: agents, schedules and secrets, almost right or not at all. */
export function settingsCases(peers: Peers, token: string): fc.Arbitrary<SettingsCase> {
  const slug = fc.nat(1e9).map((n) => `fuzz-${n}`);
  const odd = fc.oneof(
    slug,
    slug,
    slug,
    oddText.map((text) => encodeURIComponent(Buffer.from(text).toString())),
  );
  const dry = fc.boolean();
  const drawn: fc.Arbitrary<Drawn> = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.tuple(agents(peers), odd, dry).map(([whole, name, isDry]) => ({
        kind: 'agent' as const,
        method: 'PUT',
        path: `/v1/agents/${name}${isDry ? '?dryRun=true' : ''}`,
        isDry,
        whole,
      })),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(agents(peers), slug).map(([whole, name]) => ({
        kind: 'agent' as const,
        method: 'POST',
        path: '/v1/agents',
        isDry: false,
        whole: { slug: name, ...whole },
      })),
    },
    {
      weight: 2,
      arbitrary: agents(peers).map((whole) => ({
        kind: 'agent' as const,
        method: 'PATCH',
        path: `/v1/agents/${STANDING}?dryRun=true`,
        isDry: true,
        whole,
      })),
    },
    {
      weight: 4,
      arbitrary: schedules.map((whole) => ({
        kind: 'schedule' as const,
        method: 'POST',
        path: '/v1/schedules',
        isDry: false,
        whole,
      })),
    },
    {
      weight: 2,
      arbitrary: schedules.map(({ ...whole }) => ({
        kind: 'other' as const,
        method: 'PATCH',
        path: `/v1/schedules/${STANDING}`,
        isDry: true,
        whole: { ...whole, name: STANDING, paused: true },
      })),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(odd, oddText).map(([name, value]) => ({
        kind: 'secret' as const,
        method: 'PUT',
        path: `/v1/secrets/${name}`,
        isDry: false,
        whole: { value },
      })),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(
          fc.constantFrom('agents', 'schedules', 'secrets', 'agents/standing/versions', 'dead-letters'),
          oddText,
          oddText,
        )
        .map(([list, limit, cursor]) => {
          const of = (text: string) => encodeURIComponent(Buffer.from(text).toString());
          const path = `/v1/${list}?limit=${of(limit)}&cursor=${of(cursor)}`;
          return { kind: 'other' as const, method: 'GET', path, isDry: true, whole: undefined };
        }),
    },
  );
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  return fc.tuple(drawn, hostileChanges).map(([{ whole, ...rest }, changes]) => ({
    ...rest,
    headers,
    body: whole === undefined ? undefined : bodyOf(whole, changes),
  }));
}

/** A whole that was dropped is an empty body. */
const bodyOf = (whole: unknown, changes: Mutation[]): Buffer =>
  Buffer.from((JSON.stringify(mutate(whole, changes)) as string | undefined) ?? '');
