import { Module } from '@nestjs/common';
import { Catalog } from './catalog.js';
import { AgentDirectoryModule } from './agent-directory.module.js';

/** Finds agents, and writes those that tenants make themselves. */
@Module({
  imports: [AgentDirectoryModule],
  providers: [Catalog],
  exports: [AgentDirectoryModule, Catalog],
})
export class CatalogModule {}
