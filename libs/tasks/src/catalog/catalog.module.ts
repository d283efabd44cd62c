import { Module } from '@nestjs/common';
import { AgentDirectory } from './agent-directory.js';
import { Catalog } from './catalog.js';

/** Finds agents. */
@Module({ providers: [AgentDirectory], exports: [AgentDirectory] })
export class AgentDirectoryModule {}

/** Finds agents, and writes those that tenants make themselves. */
@Module({
  imports: [AgentDirectoryModule],
  providers: [Catalog],
  exports: [AgentDirectoryModule, Catalog],
})
export class CatalogModule {}
