import { isJsonObject, type JsonObject } from '@baton/a2a';

export const objectOf = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});

export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

export const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;

export const objectsOf = (value: unknown): JsonObject[] =>
  Array.isArray(value) ? value.filter(isJsonObject) : [];

/** The numbers of an object and of the objects in it. Providers add members of other types to usage. */
export function numbersOf(value: unknown): JsonObject | undefined {
  if (!isJsonObject(value)) return undefined;
  const entries = Object.entries(value).map(
    ([key, each]) => [key, numberOf(each) ?? numbersOf(each)] as const,
  );
  return Object.fromEntries(entries.filter(([, each]) => each !== undefined));
}

/** Text of a member that some providers send as JSON and not as a string. */
export const jsonTextOf = (value: unknown): string | undefined =>
  isJsonObject(value) ? JSON.stringify(value) : textOf(value);
