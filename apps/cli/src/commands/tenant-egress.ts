import type { Command } from 'commander';
import { answerOf } from '../api.js';
import { type Cli } from '../cli.js';
import {
  type OperatorOptions,
  refusalOf,
  withOperatorApi,
  withOperatorOptions,
} from '../operator/operator-api.js';
import { printFields, printValue } from '../output.js';
import { UsageError } from '../usage-error.js';

interface EgressOptions extends OperatorOptions {
  allow?: string[];
  deny?: string[];
}

/** `baton tenants egress …`: where the agents of a tenant may call. */
export function addTenantEgressCommand(tenants: Command, cli: Cli): void {
  withOperatorOptions(tenants.command('egress'))
    .description('show or change the addresses that agents of a tenant may call')
    .argument('<slug>', 'slug of the tenant')
    .option('--allow <patterns...>', 'only these: api.example.com, *.example.com:443, 10.0.0.0/8; or all')
    .option('--deny <patterns...>', 'never these, even if --allow has them; or none')
    .action(async (slug: string, options: EgressOptions) => {
      const change = {
        ...(options.allow && { egress_allow: parsePatterns(options.allow, 'all') }),
        ...(options.deny && { egress_deny: parsePatterns(options.deny, 'none') }),
      };
      const isChange = Object.keys(change).length > 0;
      const params = { path: { tenant: slug } };
      const tenant = await withOperatorApi(cli, options, (api) =>
        isChange
          ? answerOf(api.PATCH('/v1/admin/tenants/{tenant}', { params, body: change }))
          : answerOf(api.GET('/v1/admin/tenants/{tenant}', { params })),
      ).catch(inOptionNames);
      const { egress_allow: allow, egress_deny: deny } = tenant;
      if (options.json) return void printValue(cli.terminal, { allow, deny });
      printFields(
        cli.terminal,
        [
          ['allow', allow.join(', ') || 'all'],
          ['deny', deny.join(', ') || 'none'],
        ],
        8,
      );
    });
}

/** Several patterns apart or with commas, or the word for an empty list. */
function parsePatterns(texts: readonly string[], empty: 'all' | 'none'): string[] {
  const patterns = texts
    .flatMap((text) => text.split(','))
    .map((text) => text.trim())
    .filter(Boolean);
  return patterns.length === 1 && patterns[0] === empty ? [] : patterns;
}

/** Names the options instead of the fields of the API. */
function inOptionNames(error: unknown): never {
  const { status, reason = '' } = refusalOf(error) ?? {};
  if (status !== 400) throw error;
  throw new UsageError(
    `${reason.replace(/^egress_allow(\[\d+\])?/, '--allow').replace(/^egress_deny(\[\d+\])?/, '--deny')}.`,
  );
}
