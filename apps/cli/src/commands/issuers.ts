import { SCOPES } from '@baton/a2a';
import type { OperatorPaths, OperatorSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { answerOf } from '../api.js';
import { type Cli } from '../cli.js';
import { NotFoundError } from '../not-found-error.js';
import { UsageError } from '../usage-error.js';
import { OperatorError } from '../operator-error.js';
import {
  type OperatorApi,
  type OperatorOptions,
  refusalOf,
  withOperatorApi,
  withOperatorOptions,
} from '../operator/operator-api.js';
import { printed } from '../operator/printed.js';
import { printValue, printTable } from '../output.js';
import { parseScopes } from './tokens.js';

const TITLES = ['issuer', 'audience', 'tenant', 'scopes', 'grants', 'agents', 'id'];
const NONE = 'No issuers are trusted yet: npx baton issuers add <url> --tenant <slug> --audience <audience>';
/** `tasks:read,tasks:write if groups=staff`. Scopes have no blank. */
const GRANT = /^(\S+) +if +([^\s=]+)=(.+)$/;
const CLAIM = /^([^\s=]+)=(.+)$/;

type Issuer = OperatorSchemas['Issuer'];
type IssuerBody =
  OperatorPaths['/v1/admin/tenants/{tenant}/issuers']['post']['requestBody']['content']['application/json'];

interface AddOptions extends OperatorOptions {
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

/** `baton issuers …`: issuers whose tokens (JWTs) are accepted besides those of Baton. */
export function addIssuerCommands(program: Command, cli: Cli): void {
  const issuers = program
    .command('issuers')
    .description('OpenID providers whose users may call a tenant with their access tokens (JWT)');

  withOperatorOptions(issuers.command('add'))
    .description('trust an issuer; the issuer and the audience of a token select one tenant')
    .argument('<url>', 'issuer, exactly as in the claim iss')
    .requiredOption('--tenant <slug>', 'tenant that its users call')
    .requiredOption('--audience <audience>', 'audience: value that the claim aud of its tokens must contain')
    .option('--claim <claim=value>', 'accept only tokens with this claim; it selects one of several tenants')
    .option('--subject <claim>', 'claim that tells its users apart and never changes', 'sub')
    .option('--scopes <scopes>', 'scopes of each of its users, comma-separated; or none', 'agents:call')
    .option(
      '--grant <rule>',
      `what users with a certain claim may do: "tasks:read,tasks:write if groups=staff"; repeatable. Scopes: ${SCOPES.join(', ')}`,
      (rule: string, rules: string[]) => [...rules, rule],
      [] as string[],
    )
    .option('--agents <slugs>', 'the only agents that exist for its users, comma-separated (default: all)')
    .option('--requests-per-second <n>', 'limit of each of its users (default: that of the tenant)')
    .option('--jwks-url <url>', 'URL of its keys, if it has no discovery document')
    .option('--allow-http', 'allow URLs without https, for tests (default: no)')
    .option('--no-check', 'do not read its keys first')
    .action((url: string, options: AddOptions) => addIssuer(cli, url, options));

  withOperatorOptions(issuers.command('list'))
    .description('list the trusted issuers')
    .option('--tenant <slug>', 'only of this tenant')
    .action((options: OperatorOptions & { tenant?: string }) => listIssuers(cli, options));

  withOperatorOptions(issuers.command('remove'))
    .description('no longer trust an issuer; its tokens are refused immediately')
    .argument('<id>', 'id of the issuer in the list')
    .requiredOption('--tenant <slug>', 'tenant that trusts it')
    .action((id: string, options: OperatorOptions & { tenant: string }) => removeIssuer(cli, id, options));
}

/** A rule of `--grant`. Throws OperatorError. */
export function parseGrant(rule: string): Issuer['grants'][number] {
  const [, scopes, claim, value] = GRANT.exec(rule.trim()) ?? [];
  if (scopes === undefined || claim === undefined || value === undefined) {
    throw new UsageError(
      `--grant: "${rule}" is not a rule such as "tasks:read,tasks:write if groups=staff".`,
    );
  }
  return { claim, value, scopes: parseScopes(scopes, '--grant') };
}

/** The claim and the value of `--claim`. Throws OperatorError. */
function parseSelector(text: string): { claim: string; value: string } {
  const [, claim, value] = CLAIM.exec(text) ?? [];
  if (claim !== undefined && value !== undefined) return { claim, value };
  throw new UsageError(`--claim: "${text}" is not a claim and its value, such as org_id=org_1.`);
}

/** The number of `--requests-per-second`. Throws OperatorError. */
function parseRate(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new UsageError(`--requests-per-second: "${text}" is not a number from 1 to 999999.`);
}

async function addIssuer(cli: Cli, url: string, options: AddOptions): Promise<void> {
  const { tenant, agents, json } = options;
  const issuer: IssuerBody = {
    issuer: url,
    audience: options.audience,
    subject_claim: options.subject,
    selector: options.claim === undefined ? null : parseSelector(options.claim),
    jwks_url: options.jwksUrl ?? null,
    scopes: options.scopes === 'none' ? [] : parseScopes(options.scopes),
    grants: options.grant.map(parseGrant),
    agents: agents === undefined ? null : agents.split(',').map((slug) => slug.trim()),
    requests_per_second:
      options.requestsPerSecond === undefined ? null : parseRate(options.requestsPerSecond),
    allow_http: options.allowHttp ?? false,
    check: options.check,
  };
  const params = { path: { tenant } };
  const added = await withIssuerErrors(cli, options, (api) =>
    answerOf(api.POST('/v1/admin/tenants/{tenant}/issuers', { params, body: issuer })),
  );
  if (json) printValue(cli.terminal, recordOf(added));
  else cli.terminal.out(`Users of ${added.issuer} may call tenant ${tenant}. Id: ${added.id}`);
}

/** Like `withOperatorApi`. Names options of the command in errors of the API. */
async function withIssuerErrors<T>(
  cli: Cli,
  options: OperatorOptions & { tenant?: string },
  work: (api: OperatorApi) => Promise<T>,
): Promise<T> {
  return withOperatorApi(cli, options, work).catch((error: unknown) => {
    const { status, reason } = refusalOf(error) ?? {};
    const { tenant = '' } = options;
    if (status === 404) {
      throw new NotFoundError(
        `Tenant "${tenant}" trusts no issuer of that id: npx baton issuers list --tenant ${tenant} shows ids.`,
      );
    }
    if (reason === undefined) throw error;
    const sentence = `${inOptions(reason)}.`;
    throw sentence.startsWith('--') ? new UsageError(sentence) : new OperatorError(sentence);
  });
}

/** Options by the field of the API that they set. */
const OPTIONS: Readonly<Record<string, string>> = {
  issuer: 'Issuer',
  audience: '--audience',
  selector: '--claim',
  jwks_url: '--jwks-url',
  subject_claim: '--subject',
  scopes: '--scopes',
  grants: '--grant',
  agents: '--agents',
  requests_per_second: '--requests-per-second',
};

const inOptions = (reason: string): string =>
  reason
    .replace(/^issuer: The keys/, 'The keys')
    .replaceAll(/(^|; )(\w+)[\w.[\]]*: /g, (whole, start: string, field: string) =>
      OPTIONS[field] === undefined ? whole : `${start}${OPTIONS[field]}: `,
    )
    .replace('"allow_http": true', '--allow-http')
    .replace('"check": false', '--no-check')
    .replace(/ (with|without) jwks_url/, ' $1 --jwks-url')
    .replace('use another audience', 'use another --audience')
    .replace('the same claim', 'the same --claim')
    .replace(
      /remove the entry (\S+) of the tenant (\S+)$/,
      'npx baton issuers remove $1 --tenant $2 removes it',
    );

async function listIssuers(cli: Cli, options: OperatorOptions & { tenant?: string }): Promise<void> {
  const { tenant, json } = options;
  const { issuers } = await withIssuerErrors(cli, options, (api) =>
    answerOf(
      tenant === undefined
        ? api.GET('/v1/admin/issuers')
        : api.GET('/v1/admin/tenants/{tenant}/issuers', { params: { path: { tenant } } }),
    ),
  );
  if (json) printValue(cli.terminal, issuers.map(recordOf));
  else printTable(cli.terminal, TITLES, issuers.map(rowOf), NONE);
}

function rowOf({ issuer, audience, selector, tenant, scopes, grants, agents, id }: Issuer): string[] {
  const selected = selector ? ` (${selector.claim}=${selector.value})` : '';
  const rules = grants.map((grant) => `${grant.scopes.join(',')} if ${grant.claim}=${grant.value}`);
  const slugs = agents?.join(',') ?? '';
  return [issuer, `${audience}${selected}`, tenant, scopes.join(','), rules.join('; '), slugs, id];
}

const recordOf = (issuer: Issuer) => ({ ...printed(issuer), agents: issuer.agents ?? [] });

async function removeIssuer(
  cli: Cli,
  id: string,
  options: OperatorOptions & { tenant: string },
): Promise<void> {
  const { tenant, json } = options;
  const params = { path: { tenant, id } };
  const removed = await withIssuerErrors(cli, options, (api) =>
    answerOf(api.DELETE('/v1/admin/tenants/{tenant}/issuers/{id}', { params })),
  );
  if (json) return void printValue(cli.terminal, recordOf(removed));
  cli.terminal.out(
    `Tokens of ${removed.issuer} for ${removed.audience} are no longer accepted for ${tenant}.`,
  );
}
