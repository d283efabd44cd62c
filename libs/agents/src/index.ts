export { AgentList } from './agent-list.js';
export { AgentsModule } from './agents.module.js';
export { BUILTIN_AGENTS } from './builtins.js';
export { type InstalledAgent, loadInstalledAgents } from './installed-agents.js';
export * from './runtime.js';
export { assertConfig } from './runtime-configs.js';
export { SecretReader } from './secret-reader.js';
export type { JournalEntry, TurnJournal } from './turn-journal.js';
export { RuntimeTable } from './runtimes.js';
