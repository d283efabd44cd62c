export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Characters of a UUID that people compare: 32 random bits. */
const SHORT_ID = 8;

/** The end of a UUID. Those of neighbours begin with the same time. Other ids, which callers have made, are whole. */
export const shortId = (id: string): string => (UUID.test(id) ? id.slice(-SHORT_ID) : id);
