const sha256 = (text: string): string => `sha256(convert_to(${text}, 'UTF8'))`;

/** SQL of the key by which earlier releases find the id of a caller: it names no owner. */
export const unownedClientKey = (clientId: string): string => sha256(clientId);

/** SQL of the key by which the id of a caller is found. Without an owner it is that of earlier releases. */
export const clientKey = (clientId: string, owner: string): string =>
  `coalesce(sha256(${sha256(owner)} || ${sha256(clientId)}), ${unownedClientKey(clientId)})`;
