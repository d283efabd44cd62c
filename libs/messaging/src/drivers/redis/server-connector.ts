import { AbstractConnector, type RedisOptions } from 'ioredis';
import { type Socket } from 'node:net';
import { DISCONNECT_MS, openSocket } from './open-socket.js';

/** Connects to one server. */
export class ServerConnector extends AbstractConnector {
  constructor(private readonly options: RedisOptions) {
    super(DISCONNECT_MS);
  }

  override async connect(): Promise<Socket> {
    const { host = '127.0.0.1', port = 6379, family = 0, tls } = this.options;
    this.connecting = true;
    this.stream = openSocket({ host, port, family }, tls, (error) => (this.firstError ??= error));
    return this.stream;
  }
}
