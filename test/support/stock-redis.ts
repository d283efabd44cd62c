import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type RunningRedis, startRedis } from '../../apps/local/src/services/index.js';

const ROOT = join(__dirname, '../..');
/** Redis makes snapshots so if its configuration has no `save`. `npm start` makes none. */
const SNAPSHOTS_OF_REDIS = 'save 3600 1 300 100 60 10000';

/** Lines of the configuration that docker-compose.yml gives Redis, apart from its password. All others stay as Redis comes. */
export function composeRedis(): string[] {
  const file = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
  const { services } = parse(file, { merge: true }) as { services: { redis: { command: string[] } } };
  const [, , ...options] = services.redis.command;
  const ofCommand = options.join(' ').split(/(?:^| )--/);
  const script = readFileSync(join(ROOT, 'docker/make-credentials.sh'), 'utf8');
  const [, ofFile = ''] = /write redis\/redis\.conf "([^"]*)"/.exec(script) ?? [];
  const lines = [...ofFile.split('\n'), ...ofCommand].filter(
    (line) => line !== '' && !line.startsWith('requirepass'),
  );
  return lines.some((line) => line.startsWith('save ')) ? lines : [SNAPSHOTS_OF_REDIS, ...lines];
}

/** `startRedis` with what docker-compose.yml sets. `settings` may change it. */
export function startStockRedis(
  binary: string,
  folder: string,
  options: Parameters<typeof startRedis>[2] = {},
): Promise<RunningRedis> {
  return startRedis(binary, folder, {
    ...options,
    settings: [...composeRedis(), ...(options.settings ?? [])],
  });
}
