import { Global, Module } from '@nestjs/common';
import { BearerStrategy } from './bearer.strategy.js';
import { TokenService } from './token.service.js';

/** Provides TokenService and what BearerGuard needs. Expects the stores and Messaging to be provided globally. */
@Global()
@Module({ providers: [TokenService, BearerStrategy], exports: [TokenService] })
export class IdentityModule {}
