import { Module } from '@nestjs/common';
import { APP_GUARD, DiscoveryModule } from '@nestjs/core';
import { HttpModule } from '../http/http.module.js';
import { PlainTextGuard } from './plain-text.guard.js';
import { OpenApiController } from './open-api.controller.js';
import { AdminOpenApiController } from './admin-open-api.controller.js';

/** The OpenAPI documents of `/v1` at both ports, and the guard of their routes. */
@Module({
  imports: [DiscoveryModule, HttpModule],
  providers: [{ provide: APP_GUARD, useClass: PlainTextGuard }],
  controllers: [OpenApiController, AdminOpenApiController],
})
export class OpenApiModule {}
