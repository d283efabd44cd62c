import { statSync } from 'node:fs';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { answerOf } from '../api.js';
import { type Cli } from '../cli.js';
import {
  inOwnWords,
  type OperatorApi,
  type OperatorOptions,
  withOperatorApi,
  withOperatorOptions,
} from '../operator/operator-api.js';
import { OperatorError } from '../operator-error.js';
import { printed } from '../operator/printed.js';
import { printValue } from '../output.js';
import { withProgress } from '../progress.js';
import { assertTenantSlug } from './tenant-slug.js';

/** Maximum length of the first and the last line of an export, in characters. */
const MAX_LINE = 1024 * 1024;
const NDJSON = { 'content-type': 'application/x-ndjson' };

interface ExportOptions extends OperatorOptions {
  skipRunning?: boolean;
}

/** `baton tenants export|import …` */
export function addTenantArchiveCommands(tenants: Command, cli: Cli): void {
  const { terminal } = cli;
  withOperatorOptions(tenants.command('export'))
    .description(
      'write the agents, schedules and tasks of a tenant to a file: NDJSON, without tokens and secrets',
    )
    .argument('<slug>', 'slug of the tenant')
    .argument('<file>', 'new file, such as acme.ndjson; - writes to standard output')
    .option('--skip-running', 'leave out tasks that are running or queued')
    .action(async (slug: string, file: string, options: ExportOptions) => {
      const { skipRunning = false, json } = options;
      const { intoFile, standardOutput } = await import('./backup.js');
      const written = await withOperatorApi(cli, options, async (api) => {
        const write = (out: Writable) => exportInto(api, slug, skipRunning, out);
        return file === '-' ? write(standardOutput(cli)) : intoFile(terminal, file, write);
      }).catch(inOwnWords);
      if (json && file !== '-') printValue(terminal, { slug, ...written });
      terminal.err(`The export is complete: ${countsOf(written.records)}.`);
      if (skipRunning && written.runningTasks > 0) {
        terminal.err(`Left out because they are running or queued: ${written.runningTasks} tasks.`);
      }
    });

  withOperatorOptions(tenants.command('import'))
    .description('make a new tenant from an export; its schedules are paused')
    .argument('<slug>', 'slug of the new tenant')
    .argument('<file>', 'file made by `baton tenants export`; - reads standard input')
    .action(async (slug: string, file: string, options: OperatorOptions) => {
      assertTenantSlug(slug);
      const { opener } = await import('./backup.js');
      const { input, source } = counted(opener(cli, file)(), file);
      const work = () => withOperatorApi(cli, options, (api) => importFrom(api, slug, input));
      const imported = await withProgress(terminal, 'Importing', source, work).catch(inOwnWords);
      if (options.json) printValue(terminal, printed(imported));
      else terminal.out(`Tenant ${slug} (${imported.id}) is imported: ${countsOf(imported.records)}.`);
      const { secrets, paused_schedules: pausedSchedules } = imported;
      if (pausedSchedules > 0) {
        terminal.err(
          `${pausedSchedules} schedules are paused: npx baton schedules resume starts each again.`,
        );
      }
      if (secrets.length > 0) {
        terminal.err(`Set its secrets, whose values are not in the file: ${secrets.join(', ')}.`);
      }
      terminal.err(`Make its tokens: npx baton tokens create --tenant ${slug}.`);
    });
}

/** The first and the last line of an export. */
interface Exported {
  records: Record<string, number>;
  /** Secrets that are not in it. */
  secrets: string[];
  /** Tasks that were left out. */
  runningTasks: number;
}

/** Writes an export as it arrives. Rejects with an OperatorError if it breaks off: a complete export has a last line of its own. */
async function exportInto(
  api: OperatorApi,
  tenant: string,
  skipRunning: boolean,
  out: Writable,
): Promise<Exported> {
  const params = { path: { tenant }, query: { skip_running: skipRunning } };
  const lines = await answerOf(api.GET('/v1/admin/tenants/{tenant}/export', { params, parseAs: 'stream' }));
  let [begin, end] = ['', ''];
  const keepLines = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      const text = Buffer.from(chunk).toString('latin1');
      if (!begin.includes('\n') && begin.length < MAX_LINE) begin += text;
      end = (end + text).slice(-MAX_LINE);
      yield chunk;
    }
  };
  if (lines) await pipeline(Readable.fromWeb(lines), keepLines, out);
  const last = end.trimEnd().split('\n').at(-1) ?? '';
  if (!last.startsWith('{"kind":"end"')) throw new OperatorError('The export broke off: try again.');
  const { secrets } = JSON.parse(begin.split('\n', 1)[0] ?? '') as Pick<Exported, 'secrets'>;
  // An API of an earlier release does not say how many tasks are left out.
  const { records, runningTasks = 0 } = JSON.parse(last) as Pick<Exported, 'records'> & Partial<Exported>;
  return { records, secrets, runningTasks };
}

const importFrom = (api: OperatorApi, tenant: string, input: AsyncIterable<Uint8Array>) =>
  answerOf(
    api.POST('/v1/admin/tenants/{tenant}/import', {
      params: { path: { tenant } },
      headers: NDJSON,
      // By its type the body is a text. It is sent as a stream.
      body: Readable.toWeb(Readable.from(input)) as unknown as string,
      bodySerializer: (body) => body,
      duplex: 'half',
    }),
  );

/** The bytes of a file, and how many of them were read. */
function counted(bytes: AsyncIterable<Uint8Array>, file: string) {
  let read = 0;
  async function* input(): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      read += chunk.length;
      yield chunk;
    }
  }
  const source = { done: () => read, ...(file !== '-' && { total: statSync(file).size }) };
  return { input: input(), source };
}

const countsOf = (records: Record<string, number>): string => {
  const counts = Object.entries(records).filter(([, count]) => count > 0);
  return counts.map(([kind, count]) => `${kind} ${count}`).join(', ') || 'no records';
};
