import { Module } from '@nestjs/common';
import { AgentDirectory } from './agent-directory.js';

/** Finds agents. */
@Module({ providers: [AgentDirectory], exports: [AgentDirectory] })
export class AgentDirectoryModule {}
