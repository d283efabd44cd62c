import {
  type Server,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status as Status,
} from '@grpc/grpc-js';
import { decodeMessage, encodeMessage } from './protobuf.js';
import { addService, methodOf } from './grpc-services.js';

type Unary = (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => void;
const HEALTH = 'grpc.health.v1.Health';
const UNREADABLE = {
  code: Status.INVALID_ARGUMENT,
  details: 'the message is not a valid grpc.health.v1.HealthCheckRequest',
};

/** `grpc.health.v1`: load balancers ask it. It is public, and shows only whether this process takes calls. */
export class GrpcHealth {
  private isServing = true;
  /** Notifies each watcher of the status. */
  private readonly watching = new Map<ServerWritableStream<Buffer, Buffer>, () => void>();

  /** @param services full names of the services; the empty name is the whole server */
  constructor(private readonly services: readonly string[]) {}

  register(server: Server): void {
    const check: Unary = (call, answer) => {
      const name = this.serviceIn('Check', call.request);
      if (name === undefined) answer(UNREADABLE);
      else if (this.isKnown(name)) answer(null, this.answerTo('Check', name));
      else answer({ code: Status.NOT_FOUND, details: 'there is no such service' });
    };
    const watch = (call: ServerWritableStream<Buffer, Buffer>): void => {
      const name = this.serviceIn('Watch', call.request);
      if (name === undefined) {
        call.emit('error', UNREADABLE);
        return;
      }
      const send = (): void => void call.write(this.answerTo('Watch', name));
      this.watching.set(call, send);
      call.on('cancelled', () => this.watching.delete(call));
      send();
    };
    addService(server, HEALTH, { Check: check, Watch: watch });
  }

  /** The process is shutting down: balancers send no further calls. */
  drain(): void {
    this.isServing = false;
    for (const [call, send] of this.watching) {
      send();
      call.end();
    }
  }

  private isKnown(name: string): boolean {
    return name === '' || this.services.includes(name);
  }

  /** Undefined for another message. */
  private serviceIn(rpc: string, bytes: Buffer): string | undefined {
    try {
      const { service = '' } = decodeMessage(methodOf(HEALTH, rpc).input, bytes);
      return service as string;
    } catch {
      return undefined;
    }
  }

  private answerTo(rpc: string, name: string): Buffer {
    const known = this.isServing ? 'SERVING' : 'NOT_SERVING';
    return encodeMessage(methodOf(HEALTH, rpc).output, {
      status: this.isKnown(name) ? known : 'SERVICE_UNKNOWN',
    });
  }
}
