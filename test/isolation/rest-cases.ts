import type { Scope } from '../../libs/a2a/src/rights.js';
import { AGENTS, type Case, type Kind, SCHEDULES, TASKS } from './case.js';

interface RestRequest {
  scope: Scope;
  kinds: readonly Kind[];
  path: string;
  body?: object | ((id: string) => object);
  /** The caller gets what it would get for any name. */
  anyName?: boolean;
}

/** An agent that the caller would make. */
const MINE = { name: 'Mine', description: 'mine', runtime: 'echo' };

/** What the paths of `/v1/tasks` can name. */
const OF_TASKS: Readonly<Record<string, RestRequest>> = {
  'GET /v1/tasks': {
    scope: 'tasks:read',
    kinds: ['pageToken'],
    path: '/v1/tasks?cursor=<id>',
    anyName: true,
  },
  'GET /v1/tasks (of an agent)': { scope: 'tasks:read', kinds: AGENTS, path: '/v1/tasks?agent=<id>' },
  'GET /v1/tasks (that wait)': {
    scope: 'agents:call',
    kinds: ['pageToken'],
    path: '/v1/tasks?answerable=true&cursor=<id>',
    anyName: true,
  },
  'GET /v1/tasks (that wait, of an agent)': {
    scope: 'agents:call',
    kinds: AGENTS,
    path: '/v1/tasks?answerable=true&agent=<id>',
  },
  'GET /v1/tasks/:id': { scope: 'tasks:read', kinds: TASKS, path: '/v1/tasks/<id>' },
  'GET /v1/tasks/:id/artifacts': {
    scope: 'tasks:read',
    kinds: TASKS,
    path: '/v1/tasks/<id>/artifacts',
  },
  'GET /v1/tasks/:id/artifacts (a page)': {
    scope: 'tasks:read',
    kinds: TASKS,
    path: `/v1/tasks/<id>/artifacts?cursor=${Buffer.from('2.1').toString('base64url')}`,
  },
  'GET /v1/tasks/:id/event-times': {
    scope: 'tasks:read',
    kinds: [...TASKS, 'cursor'],
    path: '/v1/tasks/<id>/event-times?since_seq=1',
  },
  'GET /v1/tasks/:id/trace': { scope: 'tasks:read', kinds: TASKS, path: '/v1/tasks/<id>/trace' },
  'GET /v1/tasks/:id/trace/:entry': {
    scope: 'agents:write',
    kinds: TASKS,
    path: '/v1/tasks/<id>/trace/1',
  },
  'GET /v1/tasks/:id/trace/:entry/record': {
    scope: 'records:read',
    kinds: TASKS,
    path: '/v1/tasks/<id>/trace/1/record',
  },
  'GET /v1/tasks/:id/logs': {
    scope: 'agents:write',
    kinds: TASKS,
    path: '/v1/tasks/<id>/logs',
  },
  'GET /v1/tasks/:id/events': {
    scope: 'tasks:read',
    kinds: [...TASKS, 'cursor'],
    path: '/v1/tasks/<id>/events?since_seq=1',
  },
  'POST /v1/tasks/:id/cancel': { scope: 'agents:call', kinds: TASKS, path: '/v1/tasks/<id>/cancel' },
  'GET /v1/tasks/:id/replay': {
    scope: 'agents:write',
    kinds: TASKS,
    path: '/v1/tasks/<id>/replay',
  },
  'POST /v1/tasks/:id/resume': { scope: 'agents:call', kinds: TASKS, path: '/v1/tasks/<id>/resume' },
  'POST /v1/tasks/:id/send-again': {
    scope: 'agents:call',
    kinds: TASKS,
    path: '/v1/tasks/<id>/send-again',
  },
  'POST /v1/tasks/:id/fork': {
    scope: 'agents:call',
    kinds: TASKS,
    path: '/v1/tasks/<id>/fork',
    body: {},
  },
  'POST /v1/tasks/:id/continue': { scope: 'agents:call', kinds: TASKS, path: '/v1/tasks/<id>/continue' },
};

const ofArbiter = (text: string): string => text.replace('/v1/tasks', '/v1/requests');

/** What each of Baton's own paths can name. */
const REST: Readonly<Record<string, RestRequest>> = {
  ...OF_TASKS,
  // The same under the name that Arbiter's clients use.
  ...Object.fromEntries(
    Object.entries(OF_TASKS).map(([name, request]) => [
      ofArbiter(name),
      { ...request, path: ofArbiter(request.path) },
    ]),
  ),
  'GET /v1/usage': { scope: 'tasks:read', kinds: AGENTS, path: '/v1/usage?agent=<id>' },
  'GET /v1/limits': { scope: 'tasks:read', kinds: AGENTS, path: '/v1/limits?agent=<id>', anyName: true },
  'GET /v1/spending-caps': {
    scope: 'tasks:read',
    kinds: AGENTS,
    path: '/v1/spending-caps?agent=<id>',
    anyName: true,
  },
  'PUT /v1/spending-caps': {
    scope: 'admin',
    kinds: AGENTS,
    path: '/v1/spending-caps',
    body: (subject) => ({ of: 'agent', subject, period: 'day', amount: '1000' }),
  },
  'PUT /v1/spending-caps (of a schedule)': {
    scope: 'admin',
    kinds: SCHEDULES,
    path: '/v1/spending-caps',
    body: (subject) => ({ of: 'schedule', subject, period: 'day', amount: '1000' }),
  },
  'DELETE /v1/spending-caps/:id': { scope: 'admin', kinds: ['capId'], path: '/v1/spending-caps/<id>' },
  'GET /v1/dead-letters': {
    scope: 'tasks:read',
    kinds: ['pageToken'],
    path: '/v1/dead-letters?cursor=<id>',
    anyName: true,
  },
  'POST /v1/dead-letters/:runId/redeliver': {
    scope: 'agents:call',
    kinds: ['deadRun'],
    path: '/v1/dead-letters/<id>/redeliver',
  },
  'GET /v1/dead-pushes': {
    scope: 'tasks:read',
    kinds: ['pageToken'],
    path: '/v1/dead-pushes?cursor=<id>',
    anyName: true,
  },
  'POST /v1/dead-pushes/:id/redeliver': {
    scope: 'agents:call',
    kinds: TASKS,
    path: '/v1/dead-pushes/<id>/redeliver',
  },
  'GET /v1/agents': {
    scope: 'agents:read',
    kinds: ['agentSlug'],
    path: '/v1/agents?cursor=<base64url>',
    anyName: true,
  },
  'POST /v1/agents': {
    scope: 'agents:write',
    kinds: ['agentSlug', 'installedSlug'],
    path: '/v1/agents?dryRun=true',
    body: (slug) => ({ ...MINE, slug }),
    anyName: true,
  },
  'GET /v1/agents/:agent': { scope: 'agents:read', kinds: AGENTS, path: '/v1/agents/<id>' },
  'PUT /v1/agents/:agent': {
    scope: 'agents:write',
    kinds: AGENTS,
    path: '/v1/agents/<id>?dryRun=true',
    body: () => MINE,
    anyName: true,
  },
  'PATCH /v1/agents/:agent': {
    scope: 'agents:write',
    kinds: AGENTS,
    path: '/v1/agents/<id>',
    body: () => ({ description: 'mine' }),
  },
  'DELETE /v1/agents/:agent': { scope: 'agents:write', kinds: AGENTS, path: '/v1/agents/<id>' },
  'GET /v1/agents/:agent/versions': {
    scope: 'agents:read',
    kinds: AGENTS,
    path: '/v1/agents/<id>/versions',
  },
  'GET /v1/effects': { scope: 'agents:write', kinds: AGENTS, path: '/v1/effects?agent=<id>' },
  'GET /v1/agents/:agent/open-versions': {
    scope: 'agents:read',
    kinds: AGENTS,
    path: '/v1/agents/<id>/open-versions',
  },
  'PUT /v1/agents/:agent/next': {
    scope: 'agents:write',
    kinds: AGENTS,
    path: '/v1/agents/<id>/next',
    body: () => ({ share: 10, agent: MINE }),
  },
  'POST /v1/agents/:agent/next/promote': {
    scope: 'agents:write',
    kinds: AGENTS,
    path: '/v1/agents/<id>/next/promote',
  },
  'DELETE /v1/agents/:agent/next': {
    scope: 'agents:write',
    kinds: AGENTS,
    path: '/v1/agents/<id>/next',
  },
  'GET /v1/agents/:agent/versions/:version': {
    scope: 'agents:read',
    kinds: AGENTS,
    path: '/v1/agents/<id>/versions/1',
  },
  'DELETE /v1/agents/:agent/versions/:version': {
    scope: 'agents:write',
    kinds: AGENTS,
    path: '/v1/agents/<id>/versions/1',
  },
  'POST /v1/agents/:agent/versions/:version/restore': {
    scope: 'agents:write',
    kinds: AGENTS,
    path: '/v1/agents/<id>/versions/1/restore',
  },
  'GET /v1/secrets': {
    scope: 'secrets:write',
    kinds: ['secretName'],
    path: '/v1/secrets?cursor=<base64url>',
    anyName: true,
  },
  'PUT /v1/secrets/:name': {
    scope: 'secrets:write',
    kinds: ['newSecret'],
    path: '/v1/secrets/<id>',
    body: () => ({ value: 'mine' }),
    anyName: true,
  },
  'PATCH /v1/secrets/:name': {
    scope: 'secrets:write',
    kinds: ['secretName'],
    path: '/v1/secrets/<id>',
    body: () => ({ origins: [] }),
  },
  'DELETE /v1/secrets/:name': { scope: 'secrets:write', kinds: ['secretName'], path: '/v1/secrets/<id>' },
  'GET /v1/audit': {
    scope: 'audit:read',
    kinds: ['pageToken'],
    // The log grows while others are refused: two reads of today differ.
    path: '/v1/audit?until=2000-01-01T00:00:00Z&cursor=<id>',
    anyName: true,
  },
  'GET /v1/tokens': { scope: 'admin', kinds: ['pageToken'], path: '/v1/tokens?cursor=<id>', anyName: true },
  'POST /v1/tokens': {
    scope: 'admin',
    kinds: ['agentSlug', 'installedSlug'],
    path: '/v1/tokens',
    // Refused with the same error for any agent, so that nothing is made.
    body: (agent) => ({ name: 'mine', agents: [agent], requests_per_second: 0 }),
    anyName: true,
  },
  'GET /v1/tokens/:id': { scope: 'admin', kinds: ['tokenId'], path: '/v1/tokens/<id>' },
  'PATCH /v1/tokens/:id': {
    scope: 'admin',
    kinds: ['tokenId'],
    path: '/v1/tokens/<id>',
    body: { name: 'mine' },
  },
  'POST /v1/tokens/:id/rotate': {
    scope: 'admin',
    kinds: ['tokenId'],
    path: '/v1/tokens/<id>/rotate',
    body: {},
  },
  'DELETE /v1/tokens/:id': { scope: 'admin', kinds: ['tokenId'], path: '/v1/tokens/<id>?stop=true' },
  'GET /v1/bulk-operations': {
    scope: 'agents:call',
    kinds: ['bulkId'],
    path: '/v1/bulk-operations?cursor=<base64url>',
    anyName: true,
  },
  'POST /v1/bulk-operations': {
    scope: 'agents:call',
    kinds: AGENTS,
    path: '/v1/bulk-operations',
    body: (agent) => ({ action: 'cancel', filter: { agent }, dry_run: true }),
  },
  'GET /v1/bulk-operations/:id': {
    scope: 'agents:call',
    kinds: ['bulkId'],
    path: '/v1/bulk-operations/<id>',
  },
  'POST /v1/bulk-operations/:id/cancel': {
    scope: 'agents:call',
    kinds: ['bulkId'],
    path: '/v1/bulk-operations/<id>/cancel',
  },
  'GET /v1/connections': {
    scope: 'secrets:write',
    kinds: ['connectionId'],
    path: '/v1/connections?cursor=<base64url>',
    anyName: true,
  },
  'POST /v1/connections': {
    scope: 'secrets:write',
    kinds: AGENTS,
    path: '/v1/connections',
    body: (agent) => ({ agent }),
  },
  'DELETE /v1/connections/:id': {
    scope: 'secrets:write',
    kinds: ['connectionId'],
    path: '/v1/connections/<id>',
  },
  'GET /v1/webhooks': {
    scope: 'admin',
    kinds: ['webhookId'],
    path: '/v1/webhooks?cursor=<base64url>',
    anyName: true,
  },
  'POST /v1/webhooks': {
    scope: 'admin',
    kinds: ['agentSlug', 'installedSlug'],
    path: '/v1/webhooks',
    body: (agent) => ({ url: 'https://1.1.1.1/mine', agents: [agent] }),
  },
  'GET /v1/webhooks/:id': { scope: 'admin', kinds: ['webhookId'], path: '/v1/webhooks/<id>' },
  'PATCH /v1/webhooks/:id': {
    scope: 'admin',
    kinds: ['webhookId'],
    path: '/v1/webhooks/<id>',
    body: { enabled: false },
  },
  'POST /v1/webhooks/:id/rotate': {
    scope: 'admin',
    kinds: ['webhookId'],
    path: '/v1/webhooks/<id>/rotate',
    body: {},
  },
  'GET /v1/webhooks/:id/deliveries': {
    scope: 'admin',
    kinds: ['webhookId'],
    path: '/v1/webhooks/<id>/deliveries',
  },
  'POST /v1/webhooks/:id/redeliver': {
    scope: 'admin',
    kinds: ['webhookId'],
    path: '/v1/webhooks/<id>/redeliver',
  },
  'POST /v1/webhooks/:id/test': { scope: 'admin', kinds: ['webhookId'], path: '/v1/webhooks/<id>/test' },
  'DELETE /v1/webhooks/:id': { scope: 'admin', kinds: ['webhookId'], path: '/v1/webhooks/<id>' },
  'GET /v1/whoami': { scope: 'tasks:read', kinds: AGENTS, path: '/v1/whoami?agent=<id>', anyName: true },
  'GET /v1/schedules': {
    scope: 'tasks:read',
    kinds: ['scheduleName'],
    path: '/v1/schedules?cursor=<base64url>',
    anyName: true,
  },
  'POST /v1/schedules': {
    scope: 'schedules:write',
    kinds: AGENTS,
    path: '/v1/schedules',
    body: (agent) => ({ name: 'mine', agent, cron: '@yearly', text: 'mine' }),
  },
  'POST /v1/schedules (a name)': {
    scope: 'schedules:write',
    kinds: ['newSchedule'],
    path: '/v1/schedules',
    body: (name) => ({ name, agent: 'echo', cron: '@yearly', text: 'mine' }),
    anyName: true,
  },
  'GET /v1/schedules/:id': { scope: 'tasks:read', kinds: SCHEDULES, path: '/v1/schedules/<id>' },
  'PATCH /v1/schedules/:id': {
    scope: 'schedules:write',
    kinds: SCHEDULES,
    path: '/v1/schedules/<id>',
    body: { paused: true },
  },
  'DELETE /v1/schedules/:id': { scope: 'schedules:write', kinds: SCHEDULES, path: '/v1/schedules/<id>' },
  'POST /v1/schedules/:id/run': {
    scope: 'schedules:write',
    kinds: SCHEDULES,
    path: '/v1/schedules/<id>/run',
  },
};

/**
 * The cases of one of Baton's own paths, which may name several things, each in a request of its own. Throws for a
 * path without a description.
 */
export function restCases(path: string, method: string): Case[] {
  const key = `${method} ${path}`;
  const described = Object.keys(REST).filter((each) => each === key || each.startsWith(`${key} (`));
  if (described.length === 0) throw new Error(`Describe ${key} in rest-cases.ts, and what it can name.`);
  return described.flatMap((each) => casesOf(method, each, REST[each]!));
}

const PREPARED: Partial<Record<Kind, Case['prepare']>> = {
  newSecret: (world) => world.makeSecret(),
  newSchedule: async (world) => (await world.makeSchedule()).name,
};

const casesOf = (method: string, title: string, described: RestRequest): Case[] =>
  described.kinds.map((kind) => ({
    title: `${title} by ${kind}`,
    operation: title.replace('/v1/requests', '/v1/tasks'),
    kind,
    scope: described.scope,
    open: false,
    refused: !described.anyName,
    // Lists are looked at while nothing is made.
    sends: kind in PREPARED,
    prepare: PREPARED[kind],
    request: (id) => ({
      method,
      path: described.path.replace('<id>', id).replace('<base64url>', Buffer.from(id).toString('base64url')),
      headers: { 'last-event-id': kind === 'cursor' ? '1' : undefined },
      body: typeof described.body === 'function' ? described.body(id) : described.body,
    }),
  }));
