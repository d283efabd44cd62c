import { Module } from '@nestjs/common';
import { HostBindings } from './host-bindings.js';

/** Which tenant and agent a host name belongs to. */
@Module({ providers: [HostBindings], exports: [HostBindings] })
export class HostsModule {}
