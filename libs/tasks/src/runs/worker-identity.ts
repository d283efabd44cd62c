import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';

/** Names this process in the log and on its leases. */
@Injectable()
export class WorkerIdentity {
  readonly id = `${process.pid.toString()}-${randomUUID().slice(0, 8)}`;
}
