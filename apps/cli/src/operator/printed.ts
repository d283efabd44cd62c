/** Names in what commands of operators print as data that are not those of the API. `request_id` is the old name of `task_id`. */
const NAMES: Readonly<Record<string, string>> = {
  alive: 'isAlive',
  redelivered_as: 'redeliveredTaskId',
  request_id: 'taskId',
  webhook: 'isWebhook',
};

/**
 * A record of the API as commands of operators print it as data: its own members in camel case. Those of nested objects stay, for
 * they may be names of tables or of tenants.
 */
export const printed = (record: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [printedName(name), value as unknown]));

const printedName = (name: string): string =>
  NAMES[name] ?? name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
