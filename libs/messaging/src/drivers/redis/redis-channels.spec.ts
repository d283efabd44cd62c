import { EventEmitter } from 'node:events';
import { setImmediate as turnOfLoop } from 'node:timers/promises';
import type { QuietLog } from '../../quiet-log.js';
import { RedisChannels } from './redis-channels.js';
import type { RedisConnection } from './redis-connection.js';

/** A server that acknowledges a SUBSCRIBE when the test says so. */
class Server extends EventEmitter {
  readonly sent: string[] = [];
  readonly acknowledge: (() => void)[] = [];

  subscribe(...channels: string[]): Promise<void> {
    this.sent.push(`subscribe ${channels.join()}`);
    return new Promise((resolve) => this.acknowledge.push(resolve));
  }

  async unsubscribe(...channels: string[]): Promise<void> {
    this.sent.push(`unsubscribe ${channels.join()}`);
  }
}

describe('a channel that is left and joined again while the server has not answered', () => {
  it('is in force with the answer to the last SUBSCRIBE: a message before it could be lost', async () => {
    const server = new Server();
    const connection = { client: server, isSharded: false, connected: true, gather: () => undefined, close: () => undefined }; // prettier-ignore
    const log = { warn: () => undefined } as unknown as QuietLog;
    const channels = new RedisChannels(connection as unknown as RedisConnection, () => undefined, log);
    try {
      const first = channels.subscribe('task', () => undefined);
      await turnOfLoop();
      first.end();
      await turnOfLoop();
      let isInForce = false;
      void channels.subscribe('task', () => undefined).inForce.then(() => (isInForce = true));
      await turnOfLoop();
      expect(server.sent).toEqual(['subscribe task', 'unsubscribe task', 'subscribe task']);
      server.acknowledge[0]?.();
      await turnOfLoop();
      expect(isInForce).toBe(false);
      server.acknowledge[1]?.();
      await turnOfLoop();
      expect(isInForce).toBe(true);
    } finally {
      channels.close();
    }
  });
});
