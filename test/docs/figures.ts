import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { table } from './settings.js';

const FIGURES = join(__dirname, '../../docs/inside/figures.md');
/** Tasks a second, or tasks, for which the capacity page says what they need. */
const LOADS = [100, 500, 2_000, 10_000];
const CHUNKS = 20;
/** Of capacity: a peak of twice as much still fits. */
const RESERVE = 2;

/** The text of each `##` section of a page, by the anchor of its heading. */
export const sectionsOf = (page: string): Map<string, string> =>
  new Map(
    page
      .split(/^## /m)
      .slice(1)
      .map((text) => {
        const [heading = ''] = text.split('\n', 1);
        return [
          heading
            .toLowerCase()
            .replaceAll(/[^a-z0-9 -]/g, '')
            .replaceAll(' ', '-'),
          text,
        ];
      }),
  );

/** The numbers of a table's row in docs/inside/figures.md. Throws if there is no such row. */
function rowOf(anchor: string, name: string): number[] {
  const section = sectionsOf(readFileSync(FIGURES, 'utf8')).get(anchor) ?? '';
  const line = section.split('\n').find((each) => each.startsWith(`| ${name} `));
  if (!line) throw new Error(`docs/inside/figures.md#${anchor} has no row "${name}"`);
  return line
    .split('|')
    .slice(2, -1)
    .map((cell) => Number(cell.replaceAll(',', '')));
}

const shown = (value: number): string => value.toLocaleString('en-US', { maximumSignificantDigits: 3 });

/** What a load needs, for docs/operating/capacity.md: cores of each part at half load, processes, WAL. */
export function coresTable(): string {
  const [, , wal = 0, ...cpu] = rowOf('what-a-task-costs', 'baton, send');
  const [api = 0, worker = 0, postgres = 0, redis = 0] = cpu;
  const cores = (ms: number, load: number): number => (RESERVE * ms * load) / 1_000;
  const processes = (ms: number, load: number): string =>
    `${shown(cores(ms, load))} (${Math.ceil(cores(ms, load))})`;
  return `${table([
    ['Tasks a second', 'API (processes)', 'Worker, without your agents', 'Postgres', 'Redis', 'WAL'],
    ...LOADS.map((load) => [
      load.toLocaleString('en-US'),
      processes(api, load),
      processes(worker, load),
      shown(cores(postgres, load)),
      shown(cores(redis, load)),
      `${shown((wal * load) / 1024)} MiB/s`,
    ]),
    ['tasks a second of a full core', ...cpu.map((ms) => shown(1_000 / ms)), ''],
  ])}\n`;
}

/** What many tasks of four events and twenty chunks take, for docs/operating/capacity.md. */
export function diskTable(): string {
  const [rows = 0, indexes = 0] = rowOf('bytes-of-a-task', 'a task of `echo` with four events');
  const [chunkRows = 0, chunkIndexes = 0] = rowOf(
    'bytes-of-a-task',
    'an event of a stream with a chunk of text',
  );
  const [, , wal = 0] = rowOf('what-a-task-costs', `baton, stream of ${CHUNKS}`);
  const line = (name: string, bytes: number): string[] => [
    name,
    `${shown(bytes / 1e3)} GB`,
    `${shown(bytes / 1e4)} TB`,
    `${shown(bytes / 1e3)} TB`,
  ];
  return `${table([
    ['', '10⁶ tasks', '10⁸', '10⁹'],
    line('rows', rows + CHUNKS * chunkRows),
    line('indexes', indexes + CHUNKS * chunkIndexes),
    line('WAL, written once', wal * 1024),
  ])}\n`;
}
