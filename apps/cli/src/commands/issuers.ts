import { SLUG, TENANT_SCOPES } from '@baton/a2a';
import type { Environment } from '@baton/config';
import { type ClaimGrant, OPERATOR_ACTOR, type TrustedIssuer } from '@baton/database';
import { IssuerError, readIssuerKeys } from '@baton/identity';
import { egressRefusal, type EgressLists, Outbound, failureReason } from '@baton/outbound';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION, type JsonOption, OperatorError } from '../cli.js';
import { printJson, printTable } from '../output.js';
import { announce, requireTenant, withPlatform } from '../platform.js';
import { parseScopes } from './tokens.js';

const TITLES = ['issuer', 'audience', 'tenant', 'scopes', 'grants', 'agents', 'id'];
const NONE = 'No issuers are trusted yet: npx baton issuers add <url> --tenant <slug> --audience <audience>';
/** `tasks:read,tasks:write if groups=staff`. Scopes have no blank. */
const GRANT = /^(\S+) +if +([^\s=]+)=(.+)$/;
const CLAIM = /^([^\s=]+)=(.+)$/;
/** The index over issuer, audience and value has entries of at most 2704 bytes. */
const MAX_TEXT = 255;
const MAX_AGENTS = 100;
const MAX_GRANTS = 100;

interface AddOptions extends JsonOption {
  tenant: string;
  audience: string;
  claim?: string;
  subject: string;
  scopes: string;
  grant: string[];
  agents?: string;
  requestsPerSecond?: string;
  jwksUrl?: string;
  allowHttp?: boolean;
  check: boolean;
}

interface ListOptions extends JsonOption {
  tenant?: string;
}

/** `baton issuers …`: whose tokens (JWTs) are good besides those of Baton. */
export function addIssuerCommands(program: Command, cli: Cli): void {
  const issuers = program
    .command('issuers')
    .description('OpenID providers whose users may call a tenant with their access tokens (JWT)');

  issuers
    .command('add')
    .description('trust an issuer; the issuer and the audience of a token select one tenant')
    .argument('<url>', 'issuer, exactly as in the claim iss')
    .requiredOption('--tenant <slug>', 'tenant that its users call')
    .requiredOption('--audience <audience>', 'what the claim aud of its tokens must contain')
    .option(
      '--claim <claim=value>',
      'accept only tokens with this claim; it selects the tenant among several',
    )
    .option('--subject <claim>', 'claim that tells its users apart and never changes', 'sub')
    .option('--scopes <scopes>', 'what each of its users may do, comma-separated; or none', 'agents:call')
    .option(
      '--grant <rule>',
      `what users with a certain claim may do: "tasks:read,tasks:write if groups=staff"; repeatable. Scopes: ${TENANT_SCOPES.join(', ')}, admin`,
      (rule: string, rules: string[]) => [...rules, rule],
      [] as string[],
    )
    .option('--agents <slugs>', 'the only agents that exist for its users, comma-separated (default: all)')
    .option('--requests-per-second <n>', 'limit of each of its users (default: that of the tenant)')
    .option('--jwks-url <url>', 'URL of its keys, if it has no discovery document')
    .option('--allow-http', 'allow URLs without https, for tests (default: no)')
    .option('--no-check', 'do not read its keys first')
    .option(...JSON_OPTION)
    .action((url: string, options: AddOptions) => addIssuer(cli, url, options));

  issuers
    .command('list')
    .description('list the trusted issuers')
    .option('--tenant <slug>', 'only of this tenant')
    .option(...JSON_OPTION)
    .action((options: ListOptions) => listIssuers(cli, options));

  issuers
    .command('remove')
    .description('no longer trust an issuer; its tokens are refused at once')
    .argument('<id>', 'id of the issuer in the list')
    .requiredOption('--tenant <slug>', 'tenant that trusts it')
    .option(...JSON_OPTION)
    .action((id: string, options: JsonOption & { tenant: string }) => removeIssuer(cli, id, options));
}

/** A rule of `--grant`. Throws OperatorError. */
export function parseGrant(rule: string): ClaimGrant {
  const [, scopes, claim, value] = GRANT.exec(rule.trim()) ?? [];
  if (scopes === undefined || claim === undefined || value === undefined) {
    throw new OperatorError(
      `--grant: "${rule}" is not a rule such as "tasks:read,tasks:write if groups=staff".`,
    );
  }
  return {
    claim: textOf('--grant', claim),
    value: textOf('--grant', value),
    scopes: parseScopes(scopes, '--grant'),
  };
}

/** The claim and the value of `--claim`. Throws OperatorError. */
function parseSelector(text: string): { claim: string; value: string } {
  const [, claim, value] = CLAIM.exec(text) ?? [];
  if (claim === undefined || value === undefined) {
    throw new OperatorError(`--claim: "${text}" is not a claim and its value, such as org_id=org_1.`);
  }
  return { claim: textOf('--claim', claim), value: textOf('--claim', value) };
}

/** Throws OperatorError unless tokens can contain the text. */
function textOf(option: string, text: string): string {
  if (text !== '' && text.length <= MAX_TEXT && !text.includes('\0')) return text;
  throw new OperatorError(`${option}: give a text of 1 to ${String(MAX_TEXT)} characters.`);
}

/** The slugs of `--agents`. An agent need not exist yet. Throws OperatorError. */
function parseAgents(text: string): string[] {
  const slugs = [...new Set(text.split(',').map((slug) => slug.trim()))];
  const wrong = slugs.find((slug) => !SLUG.test(slug));
  if (wrong === undefined && slugs.length <= MAX_AGENTS) return slugs;
  throw new OperatorError(
    wrong === undefined
      ? `--agents: give at most ${String(MAX_AGENTS)} agents.`
      : `--agents: "${wrong}" is not the slug of an agent, such as helper.`,
  );
}

/** The number of `--requests-per-second`. Throws OperatorError. */
function parseRate(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new OperatorError(`--requests-per-second: "${text}" is not a number from 1 to 999999.`);
}

/** A URL as it is written, because tokens must have the same text. Throws OperatorError. */
function urlOf(what: string, text: string, allowHttp: boolean | undefined): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !['https:', 'http:'].includes(url.protocol) || !/^[\x21-\x7e]{1,1024}$/.test(text)) {
    throw new OperatorError(`${what}: "${text}" is not a URL such as https://id.example.com.`);
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new OperatorError(`${what}: leave out user name, password, "?" and "#".`);
  }
  if (url.protocol === 'http:' && !allowHttp) {
    throw new OperatorError(
      `${what}: "${text}" is not encrypted, so others could replace its keys: use https, or --allow-http for a test.`,
    );
  }
  return text;
}

async function addIssuer({ source, terminal }: Cli, url: string, options: AddOptions): Promise<void> {
  const { json, allowHttp } = options;
  if (options.grant.length > MAX_GRANTS) {
    throw new OperatorError(`--grant: give at most ${String(MAX_GRANTS)} rules.`);
  }
  const entry = {
    issuer: urlOf('Issuer', url, allowHttp),
    audience: textOf('--audience', options.audience),
    selector: options.claim === undefined ? null : parseSelector(options.claim),
    jwksUrl: options.jwksUrl === undefined ? null : urlOf('--jwks-url', options.jwksUrl, allowHttp),
    subjectClaim: textOf('--subject', options.subject),
    scopes: options.scopes === 'none' ? [] : parseScopes(options.scopes),
    grants: options.grant.map(parseGrant),
    agents: options.agents === undefined ? [] : parseAgents(options.agents),
    requestsPerSecond: options.requestsPerSecond === undefined ? null : parseRate(options.requestsPerSecond),
  };
  await withPlatform(source, async ({ environment, tenants, issuers }) => {
    const { id: tenantId, slug, egressAllow, egressDeny } = await requireTenant(tenants, options.tenant);
    const lists = { allow: egressAllow, deny: egressDeny };
    assertAllowed(entry, lists, slug);
    if (options.check) await checkKeys(entry, environment, lists);
    const result = await issuers.add({ ...entry, tenantId }, OPERATOR_ACTOR);
    if ('conflict' in result) {
      const whose = (await tenants.byId(result.conflict.tenantId))?.slug ?? '';
      throw new OperatorError(conflictOf(entry, result.conflict, whose));
    }
    const { added } = result;
    if (json) printJson(terminal, { ...added, tenant: slug });
    else terminal.out(`Users of ${added.issuer} may call tenant ${slug}. Id: ${added.id}`);
    await announce(terminal, environment, { type: 'issuers-changed', tenantId, issuer: added.issuer });
  });
}

/** Throws OperatorError if the lists of the tenant close the place of the keys: its tokens would never be good. */
function assertAllowed(
  { issuer, jwksUrl }: Pick<TrustedIssuer, 'issuer' | 'jwksUrl'>,
  lists: EgressLists,
  slug: string,
): void {
  const reason = egressRefusal(lists, jwksUrl ?? issuer);
  if (reason === undefined) return;
  const field = jwksUrl === null ? 'Issuer' : '--jwks-url';
  throw new OperatorError(`${field}: ${reason}: npx baton tenants egress ${slug} shows it.`);
}

/** Throws OperatorError unless the issuer has keys, because a wrong URL would only show when a user is refused. */
async function checkKeys(
  entry: Pick<TrustedIssuer, 'issuer' | 'jwksUrl'>,
  environment: Environment,
  lists: EgressLists,
): Promise<void> {
  const outbound = new Outbound(environment);
  try {
    const calls = outbound.forTenant(() => Promise.resolve(lists));
    const { keys } = await readIssuerKeys(calls, entry);
    if (keys.length === 0) throw new IssuerError('it has no keys');
  } catch (error) {
    const reason = error instanceof IssuerError ? error.message : failureReason(error);
    if (reason === undefined) throw error;
    throw new OperatorError(
      `The keys of ${entry.issuer} cannot be read: ${reason}. Correct the URL, or add it unseen with --no-check.`,
    );
  } finally {
    await outbound.onApplicationShutdown();
  }
}

function conflictOf(
  { audience, selector, jwksUrl }: Pick<TrustedIssuer, 'audience' | 'selector' | 'jwksUrl'>,
  conflict: TrustedIssuer,
  tenant: string,
): string {
  const show = `npx baton issuers remove ${conflict.id} --tenant ${tenant} removes it`;
  if (conflict.audience !== audience || conflict.jwksUrl !== jwksUrl) {
    const keys = conflict.jwksUrl === null ? 'without --jwks-url' : `with --jwks-url ${conflict.jwksUrl}`;
    return `Tenant ${tenant} trusts this issuer ${keys}: give the same, or ${show}.`;
  }
  if (conflict.selector && selector?.claim !== conflict.selector.claim) {
    return `Tenant ${tenant} trusts this issuer and audience for tokens with the claim ${conflict.selector.claim}: select a tenant with the same --claim ${conflict.selector.claim}=<value>, or ${show}.`;
  }
  return `Tenant ${tenant} trusts this issuer and audience already, and a token must select one tenant: use another --audience, give each entry another value of the same --claim, or ${show}.`;
}

async function listIssuers({ source, terminal }: Cli, { tenant, json }: ListOptions): Promise<void> {
  const records = await withPlatform(source, async ({ tenants, issuers }) => {
    const only = tenant === undefined ? undefined : await requireTenant(tenants, tenant);
    const [found, all] = await Promise.all([issuers.list(only?.id), only ? [only] : tenants.list()]);
    const slugs = new Map(all.map(({ id, slug }) => [id, slug]));
    return found.map((issuer) => ({ ...issuer, tenant: slugs.get(issuer.tenantId) ?? '' }));
  });
  const rows = records.map(({ issuer, audience, selector, tenant: slug, scopes, grants, agents, id }) => {
    const selected = selector ? ` (${selector.claim}=${selector.value})` : '';
    const rules = grants.map((grant) => `${grant.scopes.join(',')} if ${grant.claim}=${grant.value}`);
    return [issuer, `${audience}${selected}`, slug, scopes.join(','), rules.join('; '), agents.join(','), id];
  });
  if (json) printJson(terminal, records);
  else printTable(terminal, TITLES, rows, NONE);
}

async function removeIssuer(
  { source, terminal }: Cli,
  id: string,
  { tenant, json }: JsonOption & { tenant: string },
): Promise<void> {
  await withPlatform(source, async ({ environment, tenants, issuers }) => {
    const { id: tenantId } = await requireTenant(tenants, tenant);
    const removed = await issuers.remove(tenantId, id, OPERATOR_ACTOR);
    if (!removed) {
      throw new OperatorError(
        `Tenant "${tenant}" trusts no issuer of that id: npx baton issuers list --tenant ${tenant} shows ids.`,
      );
    }
    if (json) printJson(terminal, { ...removed, tenant });
    else
      terminal.out(`Tokens of ${removed.issuer} for ${removed.audience} are no longer good for ${tenant}.`);
    await announce(terminal, environment, { type: 'issuers-changed', tenantId, issuer: removed.issuer });
  });
}
