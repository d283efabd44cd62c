import type { AgentCard, AgentSkill } from '../model.js';

type JsonObject = Record<string, unknown>;

/** Version of the schema the flat shape follows; 0.2 clients do not look at it. */
const PROTOCOL_VERSION = '0.3.0';

/**
 * The card as 0.2 and 0.3 write it: one main `url`, further ones in `additionalInterfaces`, security as
 * OpenAPI has it. Signatures are left out: they are made over the 1.0 form.
 */
export function flattenCard(card: AgentCard): JsonObject {
  const interfaces = card.supportedInterfaces.filter(({ protocolVersion }) =>
    protocolVersion.startsWith('0.'),
  );
  const [main] = interfaces;
  return {
    protocolVersion: PROTOCOL_VERSION,
    name: card.name,
    description: card.description,
    version: card.version,
    url: main?.url,
    preferredTransport: main?.protocolBinding,
    additionalInterfaces: interfaces.map(({ url, protocolBinding }) => ({ url, transport: protocolBinding })),
    ...(card.provider && { provider: card.provider }),
    ...(card.documentationUrl && { documentationUrl: card.documentationUrl }),
    ...(card.iconUrl && { iconUrl: card.iconUrl }),
    capabilities: flattenCapabilities(card),
    supportsAuthenticatedExtendedCard: card.capabilities?.extendedAgentCard ?? false,
    securitySchemes: flattenSchemes(card.securitySchemes),
    security: flattenRequirements(card.securityRequirements),
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    skills: card.skills.map(flattenSkill),
  };
}

const flattenCapabilities = ({ capabilities }: AgentCard): JsonObject => ({
  streaming: capabilities?.streaming ?? false,
  pushNotifications: capabilities?.pushNotifications ?? false,
  stateTransitionHistory: false,
  ...(capabilities?.extensions.length && { extensions: capabilities.extensions }),
});

function flattenSkill({ securityRequirements, ...skill }: AgentSkill): JsonObject {
  const { id, name, description, tags, examples, inputModes, outputModes } = skill;
  return {
    id,
    name,
    description,
    tags,
    ...(examples.length > 0 && { examples }),
    ...(inputModes.length > 0 && { inputModes }),
    ...(outputModes.length > 0 && { outputModes }),
    ...(securityRequirements.length > 0 && { security: flattenRequirements(securityRequirements) }),
  };
}

/** Bearer tokens are the only scheme this server has; others would have to be added here. */
function flattenSchemes(schemes: AgentCard['securitySchemes']): JsonObject {
  const flat: JsonObject = {};
  for (const [name, { scheme }] of Object.entries(schemes)) {
    if (scheme?.$case !== 'httpAuthSecurityScheme') continue;
    const { description, bearerFormat } = scheme.value;
    flat[name] = {
      type: 'http',
      scheme: scheme.value.scheme.toLowerCase(),
      ...(description && { description }),
      ...(bearerFormat && { bearerFormat }),
    };
  }
  return flat;
}

const flattenRequirements = (requirements: AgentCard['securityRequirements']): JsonObject[] =>
  requirements.map(({ schemes }) =>
    Object.fromEntries(Object.entries(schemes).map(([name, { list }]) => [name, list])),
  );
