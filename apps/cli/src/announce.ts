import type { Environment } from '@baton/config';
import { withMessaging } from './messaging.js';
import type { Terminal } from './output.js';

const UNTOLD = 'Messaging does not answer: running processes notice the change within a second or two.';

/** Tell every process that the agents or hosts of the tenant have changed; a note if messaging does not take it. */
export async function announceCatalog(
  terminal: Terminal,
  environment: Environment,
  tenantId: string,
): Promise<void> {
  const told = await withMessaging(environment, async (messaging, answers) => {
    if (answers) await messaging.publishControl({ type: 'catalog-changed', tenantId });
    return answers;
  });
  if (!told) terminal.err(UNTOLD);
}
