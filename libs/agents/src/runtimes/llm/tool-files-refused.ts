import { AgentFailure } from './agent-failure.js';

/** A provider takes no request with the files of tools that it has. Without them it may. */
export class ToolFilesRefused extends AgentFailure {}
