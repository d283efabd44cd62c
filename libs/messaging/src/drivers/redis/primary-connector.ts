import { SentinelConnector } from 'ioredis';
import type { Socket } from 'node:net';

/** Connects to the primary that Sentinels name. */
export class PrimaryConnector extends SentinelConnector {
  override async connect(report: (type: string, error: Error) => void): Promise<Socket> {
    const socket = await super.connect(report);
    return socket.on('error', () => undefined);
  }
}
