import { createLogger, forwardLogs, hideInLogs, type Logger } from './logger.js';
import { NestLogger } from './nest-logger.js';

/** A logger that writes into a list of parsed lines. */
function recording(level: 'info' | 'debug'): { logger: Logger; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
  return { logger: createLogger({ logLevel: level }, 'worker', { write }), lines };
}

describe('logger', () => {
  it('writes the ids of a child into each of its lines', () => {
    const { logger, lines } = recording('info');
    logger.child({ requestId: 'r1', tenantId: 't1' }).child({ taskId: 'k1' }).info('claimed', { attempt: 2 });
    expect(lines).toEqual([
      expect.objectContaining({
        level: 'info',
        process: 'worker',
        requestId: 'r1',
        tenantId: 't1',
        taskId: 'k1',
        attempt: 2,
        msg: 'claimed',
      }),
    ]);
  });

  it('never writes a token, a secret or an authorization header', () => {
    const { logger, lines } = recording('info');
    logger.info('call', { token: 'hunter2', req: { headers: { authorization: 'Bearer hunter2' } } });
    logger.child({ secret: 'hunter2' }).info('made');
    expect(JSON.stringify(lines)).not.toContain('hunter2');
    expect(lines).toHaveLength(2);
  });

  it('hands each line to a forwarder as it is written, and to none that is gone', () => {
    const { logger, lines } = recording('info');
    const forwarded: unknown[] = [];
    forwardLogs((line) => void forwarded.push(JSON.parse(line)));
    hideInLogs('hunter2', (line) => line.replaceAll('hunter2', '[hidden]'));
    logger.info('said hunter2', { token: 'x' });
    logger.debug('too fine');
    forwardLogs(undefined);
    logger.info('after');
    expect(lines).toHaveLength(2);
    expect(forwarded).toEqual([expect.objectContaining({ msg: 'said [hidden]', token: '[redacted]' })]);
  });

  it('keeps the message, stack and cause of an error', () => {
    const { logger, lines } = recording('info');
    logger.error('append failed', { err: new Error('no route', { cause: new Error('unplugged') }) });
    expect(JSON.stringify(lines[0])).toMatch(/no route.*unplugged/);
  });

  it('writes a thrown value that is no error', () => {
    const { logger, lines } = recording('info');
    for (const err of ['a text', undefined, null, 7]) logger.error('failed', { err });
    expect(lines.map(({ err }) => err)).toEqual(['a text', undefined, null, 7]);
  });

  it('calls an error by its name, whatever a bundler calls its class', () => {
    const { logger, lines } = recording('info');
    class Renamed2 extends Error {
      override readonly name = 'TurnFailure';
    }
    logger.error('failed', { err: new Renamed2('no answer') });
    expect(lines).toEqual([
      expect.objectContaining({ err: expect.objectContaining({ type: 'TurnFailure' }) }),
    ]);
  });

  it('logs the lines of Nest: its notes as debug, its errors as errors', () => {
    const { logger, lines } = recording('debug');
    const nest = new NestLogger(logger);
    nest.log('Mapped {/healthz, GET} route', 'RouterExplorer');
    nest.error('boom', 'Error: boom\n at x', 'ExceptionsHandler');
    expect(lines).toMatchObject([
      { level: 'debug', context: 'RouterExplorer' },
      { level: 'error', msg: 'boom', stack: 'Error: boom\n at x', context: 'ExceptionsHandler' },
    ]);
  });
});
