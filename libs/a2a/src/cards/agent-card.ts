import { type Agent, hasPush, type PushPolicy } from '../agent.js';
import { withoutUnsafeLinks } from '../agent-definition.js';
import {
  AgentCard,
  type AgentExtension,
  type AgentInterface,
  AgentSkill,
  type JsonObject,
} from '../model.js';
import { wellFormed } from '../well-formed.js';

/** Every binding of HTTP and version an agent is served with, the preferred one first. A new binding is one row. */
const INTERFACES: readonly { binding: string; version: string; path: (slug: string) => string }[] = [
  { binding: 'JSONRPC', version: '1.0', path: (slug) => `/agents/${slug}` },
  { binding: 'JSONRPC', version: '0.3', path: (slug) => `/agents/${slug}` },
  { binding: 'HTTP+JSON', version: '1.0', path: (slug) => `/agents/${slug}` },
  // Its clients add `/v1` themselves.
  { binding: 'HTTP+JSON', version: '0.3', path: (slug) => `/agents/${slug}` },
];

const DEFAULT_MODES = ['text/plain', 'application/json'];
/** Name of the one security scheme: the tenant's bearer token. */
const BEARER = 'bearer';

/** What every agent's streams have beside the specification: docs/calling/resume-extension.md. */
export const RESUME_EXTENSION: AgentExtension = {
  uri: 'urn:baton:a2a:resume:v1',
  description:
    'Each event of a stream has the id of its place in the log of the task. SubscribeToTask with the header ' +
    'Last-Event-ID sends every event after that one, also those of a task that has ended.',
  required: false,
  params: undefined,
};

/**
 * The card of an agent as this server offers it at `publicUrl` (A2A 1.0 §4.4.1), unsigned.
 * @param grpcAddress name and port of the gRPC port, if the card lists it
 * @param push which agents have push notifications
 */
export function buildAgentCard(
  agent: Agent,
  publicUrl: string,
  grpcAddress?: string,
  push: PushPolicy = 'declared',
): AgentCard {
  const { slug } = agent;
  // Earlier releases have stored text that is not well-formed Unicode.
  const definition = wellFormed(withoutUnsafeLinks(agent.definition));
  const { inputModes, outputModes } = definition;
  return {
    name: definition.name,
    description: definition.description,
    version: definition.version,
    provider: definition.provider,
    documentationUrl: definition.documentationUrl,
    iconUrl: definition.iconUrl,
    supportedInterfaces: buildInterfaces(slug, publicUrl, grpcAddress),
    capabilities: {
      streaming: true,
      pushNotifications: hasPush(agent, push),
      extensions: extensionsOf(definition),
      extendedAgentCard: definition.extended !== undefined,
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
    skills: skillsOf(slug, definition),
    signatures: [],
  };
}

function buildInterfaces(slug: string, publicUrl: string, grpcAddress?: string): AgentInterface[] {
  const base = publicUrl.replace(/\/+$/, '');
  const interfaces = INTERFACES.map(({ binding, version, path }) => ({
    url: base + path(slug),
    protocolBinding: binding,
    protocolVersion: version,
    tenant: '',
  }));
  if (grpcAddress === undefined) return interfaces;
  // One port has all agents: clients of 1.0 send `tenant` with every request, and those of 0.3 have no such field.
  const grpc = { url: grpcAddress, protocolBinding: 'GRPC' };
  return [
    ...interfaces,
    { ...grpc, protocolVersion: '1.0', tenant: slug },
    { ...grpc, protocolVersion: '0.3', tenant: '' },
  ];
}

/** The agent as its extended card describes it: its card is the extended one. Undefined if it has none. */
export function extendAgent(agent: Agent): Agent | undefined {
  const { slug, definition } = agent;
  const { extended } = definition;
  if (!extended) return undefined;
  const { description = definition.description, documentationUrl = definition.documentationUrl } = extended;
  const byId = new Map([...skillsOf(slug, definition), ...extended.skills].map((skill) => [skill.id, skill]));
  const skills = [...byId.values()];
  return {
    ...agent,
    definition: { ...definition, description, skills, ...(documentationUrl && { documentationUrl }) },
  };
}

const extensionsOf = ({ extensions }: Agent['definition']): AgentExtension[] => [
  ...extensions.filter(({ uri }) => uri !== RESUME_EXTENSION.uri),
  RESUME_EXTENSION,
];

const skillsOf = (slug: string, definition: Agent['definition']): AgentSkill[] =>
  definition.skills.length > 0 ? definition.skills : [defaultSkill(slug, definition)];

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

/** `1.0`: pure 1.0; `0.2`: the flat shape of 0.2 and 0.3; `both`: the fields of both generations together. */
export type CardForm = '1.0' | 'both' | '0.2';

/** The JSON of a card (wire contract P-11). */
export function encodeCard(card: AgentCard, form: CardForm): JsonObject {
  if (form === '0.2') return flattenCard(card);
  const json = withRequiredLists(card);
  if (form === '1.0') return json;
  const flat = flattenCard(card);
  return { ...flat, ...json, securitySchemes: mergeSchemes(flat.securitySchemes, json.securitySchemes) };
}

/**
 * ProtoJSON without empty lists. Those that a card must have (A2A 1.0 §4.4.1, §4.4.5) stay: the resolvers of Python and Java for 0.3 refuse
 * a card without them.
 */
function withRequiredLists(card: AgentCard): JsonObject {
  const json = AgentCard.toJSON(card) as JsonObject;
  // A member keeps its place: people read cards from the top.
  const supportedInterfaces = json['supportedInterfaces'] ?? [];
  const { defaultInputModes, defaultOutputModes } = card;
  const skills = card.skills.map((skill) => ({ ...(AgentSkill.toJSON(skill) as object), tags: skill.tags }));
  return { ...json, supportedInterfaces, defaultInputModes, defaultOutputModes, skills };
}

/**
 * The one member that both generations have under the same name in different shapes. The shapes do not
 * collide inside a scheme, so each scheme carries both. A signature covers only members of 1.0.
 *
 * Both name the HTTP scheme in the same letters: Python's SDK takes the old shape over the new one where it finds both, and
 * verifies the signature with that.
 */
function mergeSchemes(flat: unknown, current: unknown): JsonObject {
  const flatSchemes = flat as Record<string, JsonObject>;
  const schemes = Object.entries((current ?? {}) as Record<string, JsonObject>);
  return Object.fromEntries(
    schemes.map(([name, scheme]) => [
      name,
      { ...flatSchemes[name], ...(scheme.httpAuthSecurityScheme as JsonObject | undefined), ...scheme },
    ]),
  );
}

/** Version of the schema the flat shape follows; 0.2 clients ignore it. */
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

/** The flat card of an agent for clients of another system, without our extensions. */
export function buildForeignCard(
  agent: Agent,
  publicUrl: string,
  url: string,
  push?: PushPolicy,
): JsonObject {
  const card = buildAgentCard(agent, publicUrl, undefined, push);
  const extensions = card.capabilities?.extensions.filter((each) => each !== RESUME_EXTENSION) ?? [];
  const supportedInterfaces = [{ url, protocolBinding: 'JSONRPC', protocolVersion: '0.3', tenant: '' }];
  const capabilities = card.capabilities && { ...card.capabilities, extensions };
  return flattenCard({ ...card, capabilities, supportedInterfaces });
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
