import { ComputeModule } from '@baton/compute';
import { ConfigModule, type Environment } from '@baton/config';
import { DatabaseModule } from '@baton/database';
import { LimitsModule } from '@baton/identity';
import { MessagingModule } from '@baton/messaging';
import { TelemetryModule } from '@baton/telemetry';
import { type DynamicModule, Module } from '@nestjs/common';
import { AdminModule } from './admin/admin.module.js';
import { ConsoleModule } from './console/console.module.js';
import { CardsModule } from './cards/cards.module.js';
import { GrpcModule } from './grpc/grpc.module.js';
import { HttpJsonModule } from './http-json/http-json.module.js';
import { JsonRpcModule } from './json-rpc/json-rpc.module.js';
import { McpModule } from './mcp/mcp.module.js';
import { HealthModule } from './health/health.module.js';
import { AccessModule } from './access/access.module.js';
import { HttpModule } from './http/http.module.js';
import { OpenApiModule } from './openapi/open-api.module.js';
import { RestModule } from './rest/rest.module.js';

/** The composition root of the API: HTTP and the use cases. Left out on purpose: runtimes; it executes nothing. */
@Module({
  imports: [
    TelemetryModule.named('api'),
    DatabaseModule,
    MessagingModule,
    LimitsModule,
    ComputeModule,
    AccessModule,
    HttpModule,
    JsonRpcModule,
    HttpJsonModule,
    McpModule,
    GrpcModule,
    CardsModule,
    RestModule,
    AdminModule,
    OpenApiModule,
    HealthModule,
    ConsoleModule,
  ],
})
export class ApiModule {
  /** @param environment read and checked before Nest starts, so that its errors are shown plainly */
  static use(environment: Environment): DynamicModule {
    return { module: ApiModule, imports: [ConfigModule.use(environment)] };
  }
}
