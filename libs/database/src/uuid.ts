const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether Postgres takes the text as a `uuid`. An id that is none of these names nothing. */
export const isUuid = (text: string): boolean => UUID.test(text);
