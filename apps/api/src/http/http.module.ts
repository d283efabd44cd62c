import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { BodyReader } from './body.js';
import { BodyMemoryPool } from './body-memory.js';
import { ErrorFilter, Failures } from './errors.js';
import { PublicUrl } from './public-url.js';
import { ReadMemoryPool } from './read-memory.js';
import { ManagementPort } from '../management/management-port.js';
import { Traffic } from './requests.js';

const SHARED = [Failures, BodyMemoryPool, BodyReader, ManagementPort, PublicUrl, ReadMemoryPool, Traffic];

/** Shared by all endpoints: errors, bodies, requests in flight, memory for large tasks, the server's own URL. */
@Module({ providers: [{ provide: APP_FILTER, useClass: ErrorFilter }, ...SHARED], exports: SHARED })
export class HttpModule {}
