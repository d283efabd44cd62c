import { Environment } from '@baton/config';
import { countDatabaseTimeouts, Logger, Metrics } from '@baton/telemetry';
import { Global, Module, type OnApplicationShutdown } from '@nestjs/common';
import { createMessaging } from './create-messaging.js';
import { Messaging } from './messaging.js';

/** A process that starts on a busy machine may be too slow to read an answer that is there. */
const START_MS = 30_000;

/** Provides Messaging, connected, to every module of a process, and closes it last. */
@Global()
@Module({
  providers: [
    {
      provide: Messaging,
      inject: [Environment, Logger, Metrics],
      useFactory: async (
        { redisUrl, databaseDirectUrl: databaseUrl }: Environment,
        log: Logger,
        metrics: Metrics,
      ): Promise<Messaging> => {
        const messaging = createMessaging({
          redisUrl,
          databaseUrl,
          log,
          onGivenUp: countDatabaseTimeouts(metrics),
        });
        await messaging.start(START_MS);
        return messaging;
      },
    },
  ],
  exports: [Messaging],
})
export class MessagingModule implements OnApplicationShutdown {
  constructor(private readonly messaging: Messaging) {}

  async onApplicationShutdown(): Promise<void> {
    await this.messaging.close();
  }
}
