import type { Agent } from '../agent.js';
import type { AgentCard, AgentInterface, AgentSkill } from '../model.js';

/** Every binding and version an agent is served with, the preferred one first. A new binding is one row. */
const INTERFACES: readonly { binding: string; version: string; path: (slug: string) => string }[] = [
  { binding: 'JSONRPC', version: '1.0', path: (slug) => `/agents/${slug}` },
  { binding: 'JSONRPC', version: '0.3', path: (slug) => `/agents/${slug}` },
];

const DEFAULT_MODES = ['text/plain', 'application/json'];
/** Name of the one security scheme: the tenant's bearer token. */
const BEARER = 'bearer';

/** The card of an agent as this server offers it at `publicUrl` (A2A 1.0 §4.4.1), unsigned. */
export function buildAgentCard({ slug, definition }: Agent, publicUrl: string): AgentCard {
  const { skills, inputModes, outputModes } = definition;
  return {
    name: definition.name,
    description: definition.description,
    version: definition.version,
    provider: definition.provider,
    documentationUrl: definition.documentationUrl,
    iconUrl: definition.iconUrl,
    supportedInterfaces: buildInterfaces(slug, publicUrl),
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extensions: definition.extensions,
      extendedAgentCard: false,
    },
    securitySchemes: {
      [BEARER]: {
        scheme: {
          $case: 'httpAuthSecurityScheme',
          value: { scheme: 'Bearer', bearerFormat: '', description: "A token of the caller's tenant" },
        },
      },
    },
    securityRequirements: [{ schemes: { [BEARER]: { list: [] } } }],
    defaultInputModes: inputModes.length > 0 ? inputModes : DEFAULT_MODES,
    defaultOutputModes: outputModes.length > 0 ? outputModes : DEFAULT_MODES,
    skills: skills.length > 0 ? skills : [defaultSkill(slug, definition)],
    signatures: [],
  };
}

function buildInterfaces(slug: string, publicUrl: string): AgentInterface[] {
  const base = publicUrl.replace(/\/+$/, '');
  return INTERFACES.map(({ binding, version, path }) => ({
    url: base + path(slug),
    protocolBinding: binding,
    protocolVersion: version,
    tenant: '',
  }));
}

/** A card must name at least one skill. */
const defaultSkill = (id: string, { name, description }: Agent['definition']): AgentSkill => ({
  id,
  name,
  description,
  tags: [id],
  examples: [],
  inputModes: [],
  outputModes: [],
  securityRequirements: [],
});
