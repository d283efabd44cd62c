import { createLogger } from './logger.js';
import { OutageLog } from './outage-log.js';
import { FailureLog } from './failure-log.js';

it('logs once that a service is away and once that it is back, with the lost time', async () => {
  const lines: Record<string, unknown>[] = [];
  let wrote: () => void = () => undefined;
  const logger = createLogger({ logLevel: 'info' }, 'api', {
    write: (line) => {
      lines.push(JSON.parse(line) as Record<string, unknown>);
      wrote();
    },
  });
  const until = async (count: number): Promise<void> => {
    while (lines.length < count) await new Promise<void>((resolve) => (wrote = resolve));
  };
  const outages = new OutageLog(logger, 5);
  let isAway = true;
  let probes = 0;
  let probed: () => void = () => undefined;
  const probe = async (): Promise<void> => {
    probes += 1;
    probed();
    if (isAway) throw new Error('connection refused');
  };
  for (let i = 0; i < 100; i++) outages.requestFailed('Postgres', new Error('connection refused'), probe);
  while (probes < 3) await new Promise<void>((resolve) => (probed = resolve));
  isAway = false;
  await until(2);
  expect(lines).toMatchObject([
    {
      level: 'warn',
      msg: 'Postgres is away: requests that need it fail',
      err: { message: 'connection refused' },
    },
    { level: 'info', msg: 'Postgres is back', failedRequests: 100 },
  ]);
  outages.requestFailed('Postgres', new Error('again'), probe);
  await until(4);
  expect(lines[3]).toMatchObject({ msg: 'Postgres is back', failedRequests: 1 });
});

it('logs once for each reason that repeated work fails, and once that it works again', () => {
  const lines: [string, object][] = [];
  const write = (text: string, fields: object = {}): void => void lines.push([text, fields]);
  const log = new FailureLog('The sweep', { warn: write, info: write });
  log.worked();
  for (let i = 0; i < 100; i++) log.failed(new Error('connection refused'));
  log.failed(new Error('terminated'));
  log.failed(new Error('connection refused'));
  log.worked();
  log.worked();
  expect(lines).toMatchObject([
    ['The sweep fails', { err: { message: 'connection refused' } }],
    ['The sweep fails', { err: { message: 'terminated' } }],
    ['The sweep works again', { failures: 102 }],
  ]);
  log.failed(new Error('terminated'));
  expect(lines).toHaveLength(4);
});
