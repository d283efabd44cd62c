import { AgentCard } from '../model.js';
import { flattenCard } from './flatten-card.js';

/** `1.0`: pure 1.0; `0.2`: the flat shape of 0.2 and 0.3; `both`: the fields of both generations together. */
export type CardForm = '1.0' | 'both' | '0.2';

type JsonObject = Record<string, unknown>;

/** The JSON of a card (wire contract P-11). */
export function encodeCard(card: AgentCard, form: CardForm): JsonObject {
  if (form === '0.2') return flattenCard(card);
  const json = AgentCard.toJSON(card) as JsonObject;
  if (form === '1.0') return json;
  const flat = flattenCard(card);
  return { ...flat, ...json, securitySchemes: mergeSchemes(flat.securitySchemes, json.securitySchemes) };
}

/**
 * The one member that both generations have under the same name in different shapes. The shapes don't
 * collide inside a scheme, so each scheme carries both. Only what 1.0 knows is covered by a signature.
 */
function mergeSchemes(flat: unknown, current: unknown): JsonObject {
  const flatSchemes = flat as Record<string, JsonObject>;
  const schemes = Object.entries((current ?? {}) as Record<string, JsonObject>);
  return Object.fromEntries(schemes.map(([name, scheme]) => [name, { ...flatSchemes[name], ...scheme }]));
}
