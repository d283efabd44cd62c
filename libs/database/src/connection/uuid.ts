const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Whether the text is an id as we make them. Any other names nothing, in capitals too: Postgres would find the
 * row, but the channels between processes know it by the other name.
 */
export const isUuid = (text: string): boolean => UUID.test(text);
