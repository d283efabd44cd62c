import type { Agent, AgentDefinition, AgentSkill } from '@baton/a2a';

const skill = (
  id: string,
  name: string,
  description: string,
  tags: string[],
  examples: string[],
): AgentSkill => ({
  id,
  name,
  description,
  tags,
  examples,
  inputModes: [],
  outputModes: [],
  securityRequirements: [],
});

const builtin = (definition: Omit<AgentDefinition, 'version' | 'config' | 'extensions'>): Agent => ({
  id: definition.runtime,
  slug: definition.runtime,
  origin: 'builtin',
  definition: { ...definition, version: '1.0.0', config: {}, extensions: [] },
});

/** The agents that every tenant has. Their id is their slug. */
export const BUILTIN_AGENTS: readonly Agent[] = [
  builtin({
    name: 'Echo',
    description:
      'Answers with what it was sent. Made for smoke tests and load tests: metadata.echo of a message asks ' +
      'for chunks, delays, failures or a question back.',
    runtime: 'echo',
    inputModes: ['text/plain', 'application/json', '*/*'],
    outputModes: ['text/plain', 'application/json', '*/*'],
    skills: [
      skill(
        'echo',
        'Echo',
        'Returns the text, data and files of the message as one artifact, in as many chunks as asked for.',
        ['echo', 'test', 'load'],
        ['Hello', 'Hello, with metadata {"echo": {"chunks": 20, "delayMs": 100}}'],
      ),
    ],
  }),
  builtin({
    name: 'Index',
    description: 'Says which agents this server has. It answers where no other agent is named.',
    runtime: 'index',
    inputModes: ['text/plain'],
    outputModes: ['text/plain', 'application/json'],
    skills: [
      skill(
        'list-agents',
        'List agents',
        'Lists the agents that the caller can use, as text and as data.',
        ['agents', 'discovery'],
        ['Which agents are there?'],
      ),
    ],
  }),
];
