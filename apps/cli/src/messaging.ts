import type { Environment } from '@baton/config';
import { createMessaging, type Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';

/** How long a command waits for messaging before it goes on without. */
const START_MS = 3_000;

/**
 * Do `work` with messaging to the running processes, which is closed after it.
 *
 * @param work its second argument says whether messaging answers; if not, what is published is lost, and the
 * processes learn of a change only when their caches have run out
 */
export async function withMessaging<T>(
  { redisUrl, databaseUrl }: Environment,
  work: (messaging: Messaging, answers: boolean) => Promise<T>,
): Promise<T> {
  const messaging = createMessaging({ redisUrl, databaseUrl, log: Logger.silent() });
  const answers = await messaging.start(START_MS).then(
    () => true,
    () => false,
  );
  try {
    return await work(messaging, answers);
  } finally {
    if (answers) await messaging.close();
  }
}
