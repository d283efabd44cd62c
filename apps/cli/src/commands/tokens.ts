import { type Scope, SCOPES, SLUG } from '@baton/a2a';
import { MAX_TOKEN_AGENTS, MAX_TOKEN_REQUESTS_PER_SECOND, tokenState } from '@baton/identity';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption } from '../cli.js';
import { UsageError } from '../usage-error.js';
import { formatTime, printFields, printValue, printTable } from '../output.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { type DeskOptions, type RunningWork, type ShownToken, withTokenDesk } from '../token-desk.js';

const TITLES = ['prefix', 'name', 'scopes', 'agents', 'expires', 'state', 'last used', 'id'];
const WORK_TITLES = ['still there', 'agent', 'state', 'id'];
/** The least with which a token is of use. */
const DEFAULT_SCOPES: Scope = 'agents:call';
/** Of the longest name of a field. */
const FIELD_WIDTH = 18;
const MAX_OVERLAP_MS = 30 * 86_400_000;

type Options = DeskOptions & JsonOption;

interface CreateOptions extends Options {
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
    .action((options: CreateOptions) => createToken(cli, options));

  command('list')
    .description('list the tokens, newest first')
    .action((options: Options) => listTokens(cli, options));

  command('show')
    .description('show a token, with its running tasks and schedules')
    .argument('<token>', 'id or prefix of the token')
    .action((name: string, options: Options) => showToken(cli, name, options));

  command('rotate')
    .description('give a token a new secret; the old one stays valid for a while')
    .argument('<token>', 'id or prefix of the token')
    .option('--overlap <time>', 'how long: 30d, 12h, 45m, or 0', '1h')
    .option('--expires <when>', `${expiry} (default: as before)`)
    .action((name: string, options: Options & { overlap: string; expires?: string }) =>
      rotateToken(cli, name, options),
    );

  command('revoke')
    .description('revoke a token for good; every process refuses it within a second')
    .argument('<token>', 'id or prefix of the token')
    .option('--stop', 'also cancel its tasks and pause its schedules')
    .action((name: string, options: Options & { stop?: boolean }) => revokeToken(cli, name, options));
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

async function createToken(cli: Cli, options: CreateOptions): Promise<void> {
  const { name, scopes, agents, requestsPerSecond, expires } = options;
  const wanted = {
    name,
    scopes: parseScopes(scopes),
    ...(agents !== undefined && { agents: parseAgents(agents) }),
    ...(requestsPerSecond !== undefined && { requestsPerSecond: parseRate(requestsPerSecond) }),
    expiresAt: expires === undefined ? null : parseExpiry(expires, new Date()),
  };
  const { secret, token } = await withTokenDesk(cli, options, (desk) => desk.create(wanted));
  printSecret(cli, options, secret, token);
}

function printSecret({ terminal }: Cli, { tenant, json }: Options, secret: string, token: ShownToken): void {
  if (json) {
    printValue(terminal, { token: secret, ...(tenant !== undefined && { tenant }), ...recordOf(token) });
  } else {
    terminal.out(secret);
    terminal.err('This is the only time the token is shown: keep it safe now.');
  }
}

async function listTokens(cli: Cli, { json, ...options }: Options): Promise<void> {
  const tokens = await withTokenDesk(cli, options, (desk) => desk.list());
  const where = options.tenant === undefined ? '' : ` --tenant ${options.tenant}`;
  if (json) printValue(cli.terminal, tokens.map(recordOf));
  else printTable(cli.terminal, TITLES, tokens.map(rowOf), `No tokens yet: npx baton tokens create${where}`);
}

async function showToken(cli: Cli, name: string, { json, ...options }: Options): Promise<void> {
  const { token, running } = await withTokenDesk(cli, options, (desk) => desk.show(name));
  if (json) {
    printValue(cli.terminal, { ...recordOf(token), running });
    return;
  }
  const { previousPrefix, previousUntil } = token;
  const fields: [string, string][] = [
    ['id', token.id],
    ['name', token.name],
    ['state', tokenState(token)],
    ['prefix', token.prefix],
    ['scopes', token.scopes.join(', ')],
    ['agents', token.agents.join(', ') || 'all'],
    ['requests a second', token.requestsPerSecond?.toString() ?? 'as the tenant'],
    ['created', formatTime(token.createdAt)],
    ['last used', formatTime(token.lastUsedAt)],
    ['expires', formatTime(token.expiresAt)],
  ];
  if (previousPrefix !== null && previousUntil) {
    fields.push(['secret before', `${previousPrefix}, good until ${formatTime(previousUntil)}`]);
  }
  printFields(cli.terminal, fields, FIELD_WIDTH);
  printWork(cli, running);
}

async function rotateToken(
  cli: Cli,
  name: string,
  { overlap, expires, ...options }: Options & { overlap: string; expires?: string },
): Promise<void> {
  const rotation = {
    overlapMs: parseOverlap(overlap),
    ...(expires !== undefined && { expiresAt: parseExpiry(expires, new Date()) }),
  };
  const { secret, token } = await withTokenDesk(cli, options, (desk) => desk.rotate(name, rotation));
  printSecret(cli, options, secret, token);
  if (options.json) return;
  const until = rotation.overlapMs > 0 ? token.previousUntil : null;
  cli.terminal.err(
    until ? `The secret before is good until ${formatTime(until)}.` : 'The secret before is refused now.',
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
  { stop = false, json, ...options }: Options & { stop?: boolean },
): Promise<void> {
  const { token, running, stopped } = await withTokenDesk(cli, options, (desk) => desk.revoke(name, stop));
  if (json) {
    printValue(cli.terminal, { ...recordOf(token), running, ...stopped });
    return;
  }
  printTable(cli.terminal, TITLES, [rowOf(token)], '');
  if (stopped) {
    const { canceledTasks, pausedSchedules } = stopped;
    cli.terminal.err(`Canceled ${canceledTasks} tasks and paused ${pausedSchedules} schedules.`);
  }
  printWork(cli, running);
  if (!stop && running.tasks.length + running.schedules.length > 0) {
    cli.terminal.err('These go on without the token. To stop them, run the command again with --stop.');
  }
}

function printWork({ terminal }: Cli, { tasks, schedules, hasMore }: RunningWork): void {
  const rows = [
    ...tasks.map(({ id, agentId, state }) => ['task', agentId, state, id]),
    ...schedules.map(({ id, name, agent }) => [`schedule ${name}`, agent, 'active', id]),
  ];
  if (rows.length > 0) printTable(terminal, WORK_TITLES, rows, '');
  if (hasMore) terminal.err(`There are more tasks than these ${tasks.length}.`);
}

const recordOf = (token: ShownToken) => ({ ...token, state: tokenState(token) });

const rowOf = (token: ShownToken): string[] => [
  token.prefix,
  token.name,
  token.scopes.join(','),
  token.agents.join(',') || 'all',
  formatTime(token.expiresAt),
  tokenState(token),
  formatTime(token.lastUsedAt),
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
