import { type Scope, SCOPES, SLUG } from '@baton/a2a';
import type { TenantSchemas } from '@baton/contract';
import { MAX_TOKEN_AGENTS, MAX_TOKEN_REQUESTS_PER_SECOND } from '@baton/identity';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { UsageError } from '../usage-error.js';
import { formatTime, printFields, printValue, printTable } from '../output.js';
import { printed } from '../operator/printed.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { type TokenOptions, withTokens } from '../tokens-client.js';

const TITLES = ['prefix', 'name', 'scopes', 'agents', 'expires', 'state', 'last used', 'id'];
const WORK_TITLES = ['still there', 'agent', 'state', 'id'];
/** The least with which a token is of use. */
const DEFAULT_SCOPES: Scope = 'agents:call';
/** Width of the longest name of a field. */
const FIELD_WIDTH = 18;
/** A rotation ends: two tokens of one name are valid for a month at most. */
const MAX_OVERLAP_MS = 30 * 86_400_000;

type TokenCommandOptions = TokenOptions & JsonOption;
type Token = TenantSchemas['Token'];
type OpenWork = TenantSchemas['OpenWork'];

interface CreateTokenOptions extends TokenCommandOptions {
  name: string;
  scopes: string;
  agents?: string;
  requestsPerSecond?: string;
  expires?: string;
}

/** `baton tokens …`: the bearer tokens of a tenant. */
export function addTokenCommands(program: Command, cli: Cli): void {
  const tokens = program.command('tokens').description('bearer tokens of a tenant');
  const command = (name: string): Command =>
    tokens
      .command(name)
      .option('--tenant <slug>', 'as the operator: tenant of the token')
      .option('--url <url>', `${URL_OPTION[1]}; with --tenant: of a management port (BATON_ADMIN_URL)`)
      .option('--token <token>', `${TOKEN_OPTION[1]}; with --tenant: of an operator (BATON_OPERATOR_TOKEN)`)
      .option(...JSON_OPTION);
  const expiry = '30d, 12h, 45m, or the last valid day, such as 2026-12-31';

  command('create')
    .description('create a token; its secret is shown only once')
    .option('--name <name>', 'purpose of the token', 'cli')
    .option('--scopes <scopes>', `comma-separated: ${SCOPES.join(', ')}`, DEFAULT_SCOPES)
    .option('--agents <slugs>', 'comma-separated: the agents that exist for it (default: all)')
    .option('--requests-per-second <n>', 'limit of this token (default: that of the tenant)')
    .option('--expires <when>', `${expiry} (default: never)`)
    .action((options: CreateTokenOptions) => createToken(cli, options));

  command('list')
    .description('list the tokens, newest first')
    .action((options: TokenCommandOptions) => listTokens(cli, options));

  command('show')
    .description('show a token, with its running tasks and schedules')
    .argument('<token>', 'id or prefix of the token')
    .action((name: string, options: TokenCommandOptions) => showToken(cli, name, options));

  command('rotate')
    .description('give a token a new secret; the old one stays valid for a while')
    .argument('<token>', 'id or prefix of the token')
    .option('--overlap <time>', 'how long: 30d, 12h, 45m, or 0', '1h')
    .option('--expires <when>', `${expiry} (default: as before)`)
    .action((name: string, options: TokenCommandOptions & { overlap: string; expires?: string }) =>
      rotateToken(cli, name, options),
    );

  command('revoke')
    .description('revoke a token permanently; every process refuses it within a second')
    .argument('<token>', 'id or prefix of the token')
    .option('--stop', 'also cancel its tasks and pause its schedules')
    .action((name: string, options: TokenCommandOptions & { stop?: boolean }) =>
      revokeToken(cli, name, options),
    );
}

/** The scopes of a comma-separated list. Throws OperatorError that names the first unknown one. */
export function parseScopes(text: string, option = '--scopes'): Scope[] {
  const names = listOf(text);
  const unknown = names.find((name) => !SCOPES.includes(name as Scope));
  if (unknown !== undefined || names.length === 0) {
    const reason = unknown === undefined ? 'no scope is given' : `there is no scope "${unknown}"`;
    throw new UsageError(`${option}: ${reason}: choose from ${SCOPES.join(', ')}.`);
  }
  return names as Scope[];
}

/** Throws OperatorError. */
function parseAgents(text: string): string[] {
  const slugs = listOf(text);
  const wrong = slugs.find((slug) => !SLUG.test(slug));
  if (wrong !== undefined) throw new UsageError(`--agents: "${wrong}" is not the slug of an agent.`);
  if (slugs.length > 0 && slugs.length <= MAX_TOKEN_AGENTS) return slugs;
  throw new UsageError(`--agents: give 1 to ${MAX_TOKEN_AGENTS} slugs, or leave it out for all agents.`);
}

const listOf = (text: string): string[] => [
  ...new Set(
    text
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  ),
];

function parseRate(text: string): number {
  const rate = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (rate >= 1 && rate <= MAX_TOKEN_REQUESTS_PER_SECOND) return rate;
  throw new UsageError(
    `--requests-per-second: "${text}" is not a whole number from 1 to ${MAX_TOKEN_REQUESTS_PER_SECOND}.`,
  );
}

async function createToken(cli: Cli, options: CreateTokenOptions): Promise<void> {
  const { name, scopes, agents, requestsPerSecond, expires } = options;
  const wanted = {
    name,
    scopes: parseScopes(scopes),
    ...(agents !== undefined && { agents: parseAgents(agents) }),
    ...(requestsPerSecond !== undefined && { requests_per_second: parseRate(requestsPerSecond) }),
    ...(expires !== undefined && { expires_at: parseExpiry(expires, new Date()).toISOString() }),
  };
  printSecret(cli, options, await withTokens(cli, options, (tokens) => tokens.create(wanted)));
}

function printSecret(
  { terminal }: Cli,
  { tenant, json }: TokenCommandOptions,
  { secret, ...token }: TenantSchemas['IssuedToken'],
): void {
  if (json) {
    printValue(terminal, { token: secret, ...(tenant !== undefined && { tenant }), ...recordOf(token) });
  } else {
    terminal.out(secret);
    terminal.err('This is the only time the token is shown: keep it safe now.');
  }
}

async function listTokens(cli: Cli, { json, ...options }: TokenCommandOptions): Promise<void> {
  const all = await withTokens(cli, options, (tokens) => tokens.list());
  const where = options.tenant === undefined ? '' : ` --tenant ${options.tenant}`;
  if (json) printValue(cli.terminal, all.map(recordOf));
  else printTable(cli.terminal, TITLES, all.map(rowOf), `No tokens yet: npx baton tokens create${where}`);
}

async function showToken(cli: Cli, name: string, { json, ...options }: TokenCommandOptions): Promise<void> {
  const { running, ...token } = await withTokens(cli, options, (tokens) => tokens.show(name));
  if (json) {
    printValue(cli.terminal, { ...recordOf(token), running: workOf(running) });
    return;
  }
  const { previous_prefix: prefixBefore, previous_until: until } = token;
  const fields: [string, string][] = [
    ['id', token.id],
    ['name', token.name],
    ['state', token.state],
    ['prefix', token.prefix],
    ['scopes', token.scopes.join(', ')],
    ['agents', token.agents?.join(', ') ?? 'all'],
    ['requests a second', token.requests_per_second?.toString() ?? 'as the tenant'],
    ['created', timeOf(token.created_at)],
    ['last used', timeOf(token.last_used_at)],
    ['expires', timeOf(token.expires_at)],
  ];
  if (prefixBefore !== null && until !== null) {
    fields.push(['secret before', `${prefixBefore}, valid until ${timeOf(until)}`]);
  }
  printFields(cli.terminal, fields, FIELD_WIDTH);
  printWork(cli, running);
}

async function rotateToken(
  cli: Cli,
  name: string,
  { overlap, expires, ...options }: TokenCommandOptions & { overlap: string; expires?: string },
): Promise<void> {
  const rotation = {
    overlap_seconds: Math.round(parseOverlap(overlap) / 1000),
    ...(expires !== undefined && { expires_at: parseExpiry(expires, new Date()).toISOString() }),
  };
  const issued = await withTokens(cli, options, (tokens) => tokens.rotate(name, rotation));
  printSecret(cli, options, issued);
  if (options.json) return;
  const until = rotation.overlap_seconds > 0 ? issued.previous_until : null;
  cli.terminal.err(
    until === null
      ? 'The secret before is refused now.'
      : `The former secret is valid until ${timeOf(until)}.`,
  );
}

/** Throws OperatorError. */
function parseOverlap(text: string): number {
  const now = new Date(0);
  const end = text === '0' ? now : afterDuration(text, now);
  if (end && end.getTime() <= MAX_OVERLAP_MS) return end.getTime();
  throw new UsageError(`--overlap: "${text}" is not a duration up to 30d: give one such as 12h, 45m or 0.`);
}

async function revokeToken(
  cli: Cli,
  name: string,
  { stop = false, json, ...options }: TokenCommandOptions & { stop?: boolean },
): Promise<void> {
  const revoked = await withTokens(cli, options, (tokens) => tokens.revoke(name, stop));
  const {
    running,
    canceled_tasks: canceledTasks = 0,
    paused_schedules: pausedSchedules = 0,
    ...token
  } = revoked;
  if (json) {
    const stopped = stop && { canceledTasks, pausedSchedules };
    printValue(cli.terminal, { ...recordOf(token), running: workOf(running), ...stopped });
    return;
  }
  printTable(cli.terminal, TITLES, [rowOf(token)], '');
  if (stop) cli.terminal.err(`Canceled ${canceledTasks} tasks and paused ${pausedSchedules} schedules.`);
  printWork(cli, running);
  if (!stop && running.tasks.length + running.schedules.length > 0) {
    cli.terminal.err('These continue without the token. To stop them, run the command again with --stop.');
  }
}

function printWork({ terminal }: Cli, { tasks, schedules, more_tasks: hasMore }: OpenWork): void {
  const rows = [
    ...tasks.map(({ task_id: id, agent_id: agent, state }) => ['task', agent, state, id]),
    ...schedules.map(({ schedule_id: id, name, agent }) => [`schedule ${name}`, agent, 'active', id]),
  ];
  if (rows.length > 0) printTable(terminal, WORK_TITLES, rows, '');
  if (hasMore) terminal.err(`There are more tasks than these ${tasks.length}.`);
}

/** A token as data: a list of no agents stands for all. */
const recordOf = (token: Token) => ({ ...printed(token), agents: token.agents ?? [] });

/** The work of a token as data. */
const workOf = ({ tasks, more_tasks: hasMore, schedules }: OpenWork) => ({
  tasks: tasks.map(({ task_id: id, agent_id: agentId, state }) => ({ id, agentId, state })),
  hasMore,
  schedules: schedules.map(({ schedule_id: id, name, agent }) => ({ id, name, agent })),
});

const timeOf = (text: string | null): string => formatTime(text === null ? null : new Date(text));

const rowOf = (token: Token): string[] => [
  token.prefix,
  token.name,
  token.scopes.join(','),
  token.agents?.join(',') ?? 'all',
  timeOf(token.expires_at),
  token.state,
  timeOf(token.last_used_at),
  token.id,
];

const UNIT_MS = { d: 86_400_000, h: 3_600_000, m: 60_000 };
const DURATION = /^(\d{1,5})([dhm])$/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const FORMS = 'give a duration such as 30d, 12h or 45m, or a day such as 2026-12-31';

/**
 * When a token expires: `30d`, `12h` or `45m` from `now` on, or at the end of a day (`2026-12-31`, UTC).
 * Throws OperatorError for anything else, and for a time that has passed.
 */
export function parseExpiry(text: string, now: Date): Date {
  const expiry = afterDuration(text, now) ?? endOfDay(text);
  if (!expiry) throw new UsageError(`--expires: "${text}" is neither a duration nor a day: ${FORMS}.`);
  if (expiry <= now) throw new UsageError(`--expires: "${text}" is not in the future: ${FORMS}.`);
  return expiry;
}

function afterDuration(text: string, now: Date): Date | undefined {
  const [, count, unit] = DURATION.exec(text) ?? [];
  return count && unit
    ? new Date(now.getTime() + Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS])
    : undefined;
}

/** The last millisecond of the day. An impossible day (2026-02-30) is refused. */
function endOfDay(text: string): Date | undefined {
  if (!DAY.test(text)) return undefined;
  const end = new Date(`${text}T23:59:59.999Z`);
  return !Number.isNaN(end.getTime()) && end.toISOString().startsWith(text) ? end : undefined;
}
