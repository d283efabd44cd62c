export * from './model.js';
export * from './agent.js';
export * from './agent-definition.js';
export * from './agent-of-new-task.js';
export * from './call-context.js';
export * from './read-memory.js';
export * from './operation-rules.js';
export * from './cards/agent-card.js';
export * from './cards/sign-card.js';
export * from './codecs/codec.js';
export { MAX_CONTEXT_ID_LENGTH } from './codecs/fields.js';
export { V0_3_CODEC } from './codecs/v0_3.js';
export { V1_0_CODEC } from './codecs/v1_0.js';
export * from './envelope-error.js';
export * from './errors.js';
export * from './grpc-methods.js';
export * from './http-json.js';
export * from './http-routes.js';
export * from './ids.js';
export {
  assertJsonLimits,
  describeExcess,
  excessError,
  isDeeper,
  jsonExcess,
  parseJsonBody,
} from './json-limits.js';
export { isJsonObject } from './json-object.js';
export { memberOf } from './json-pointer.js';
export * from './json-rpc.js';
export { JsonScanner, MAX_JSON_DEPTH, MAX_JSON_VALUES } from './json-scanner.js';
export * from './media-type.js';
export * from './operation.js';
export * from './output-schema.js';
export * from './page-token.js';
export { parseBoundedJson } from './parse-bounded-json.js';
export * from './parse-fields.js';
export * from './profiles/index.js';
export * from './profiles/profile.js';
export * from './protocol-error.js';
export * from './reply.js';
export * from './request-details.js';
export * from './rights.js';
export * from './oauth-settings.js';
export * from './subject-token.js';
export * from './model-providers.js';
export * from './secret-origins.js';
export { firstCharacters, shortened } from './shortened.js';
export * from './task.js';
export * from './task-fold.js';
export * from './artifact-fold.js';
export * from './logged-event.js';
export * from './turn-of-alias.js';
export { answerJson, wellFormed, wellFormedJson } from './well-formed.js';
