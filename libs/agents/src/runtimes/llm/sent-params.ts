import type { LanguageModel } from 'ai';

/** The model of a provider's package. */
export type ModelV3 = Extract<Exclude<LanguageModel, string>, { specificationVersion: 'v3' }>;

/** What the AI SDK gives to the model of a provider in one call. */
export type SentParams = Parameters<ModelV3['doStream']>[0];
