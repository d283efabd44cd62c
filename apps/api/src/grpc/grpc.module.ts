import { Module } from '@nestjs/common';
import { AccessModule } from '../access/access.module.js';
import { CoreModule } from '../core/core.module.js';
import { HttpModule } from '../http/http.module.js';
import { GrpcPort } from './grpc-port.js';

/** A2A over gRPC, on a port of its own. */
@Module({ imports: [AccessModule, CoreModule, HttpModule], providers: [GrpcPort], exports: [GrpcPort] })
export class GrpcModule {}
