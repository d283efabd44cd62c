import type { Environment } from '@baton/config';
import type { ControlMessage } from '@baton/messaging';
import { withMessaging } from './messaging.js';
import type { Terminal } from './output.js';

export const UNTOLD =
  'Messaging does not answer: running processes notice the change within a second or two.';

/** Tell every process of a change; a note if messaging does not take it. */
export async function announce(
  terminal: Terminal,
  environment: Environment,
  message: ControlMessage,
): Promise<void> {
  const told = await withMessaging(environment, async (messaging, answers) => {
    if (answers) await messaging.publishControl(message);
    return answers;
  });
  if (!told) terminal.err(UNTOLD);
}

/** Tell every process that the agents or hosts of the tenant have changed. */
export const announceCatalog = (
  terminal: Terminal,
  environment: Environment,
  tenantId: string,
): Promise<void> => announce(terminal, environment, { type: 'catalog-changed', tenantId });
