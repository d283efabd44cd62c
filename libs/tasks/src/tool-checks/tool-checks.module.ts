import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { RuntimePortsModule } from '../runtime-ports/runtime-ports.module.js';
import { ToolChecks } from './tool-checks.js';

/** Checks the tools of agents before they are written. */
@Module({ imports: [OutboundModule, RuntimePortsModule], providers: [ToolChecks], exports: [ToolChecks] })
export class ToolChecksModule {}
