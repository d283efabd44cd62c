import type { TaskPushNotificationConfig } from '../model.js';
import type { Fields } from './fields.js';

/** Decode a push notification config inside a send; 0.3 lists its authentication `schemes`, 1.0 has one. */
export function readPushConfig(config: Fields): TaskPushNotificationConfig {
  const authentication = config.child('authentication');
  return {
    tenant: '',
    taskId: '',
    id: config.id('id'),
    url: config.string('url') ?? '',
    token: config.string('token') ?? '',
    authentication: authentication && {
      scheme: authentication.string('scheme') ?? authentication.strings('schemes')[0] ?? '',
      credentials: authentication.string('credentials') ?? '',
    },
  };
}
