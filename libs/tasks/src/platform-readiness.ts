import { Database } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Injectable } from '@nestjs/common';

/** A check that takes longer has failed: whoever asks has a timeout of its own. */
const CHECK_MS = 2_000;

/** What `/readyz` answers: each check with `ok`, or with the reason why it fails. */
export interface ReadinessReport {
  ready: boolean;
  checks: Record<string, string>;
}

/** Whether what every process needs is there now, and if not, what is in the way. */
@Injectable()
export class PlatformReadiness {
  constructor(
    private readonly database: Database,
    private readonly messaging: Messaging,
  ) {}

  /** @param own checks that this process has besides, by name; one that rejects has failed with that reason */
  async report(own: Record<string, () => Promise<unknown>> = {}): Promise<ReadinessReport> {
    const checks = {
      postgres: () => this.database.ping(),
      migrations: () => this.assertMigrated(),
      [`messaging (${this.messaging.driver})`]: () => this.messaging.ping(),
      ...own,
    };
    const outcomes = await Promise.all(
      Object.entries(checks).map(async ([name, probe]) => [name, await check(probe)] as const),
    );
    return { ready: outcomes.every(([, text]) => text === 'ok'), checks: Object.fromEntries(outcomes) };
  }

  private async assertMigrated(): Promise<void> {
    const pending = await this.database.pendingMigrations();
    if (pending.length > 0) throw new Error(`run \`npm run migrate\`: ${pending.join(', ')} not applied`);
  }
}

/** `ok`, or the plain reason. Reasons of our own stores hold no secrets: they are meant to be shown. */
async function check(probe: () => Promise<unknown>): Promise<string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no answer within ${String(CHECK_MS)} ms`), CHECK_MS);
  });
  const outcome = probe().then(
    () => 'ok',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  const first = await Promise.race([outcome, late]);
  clearTimeout(timer);
  return first;
}
