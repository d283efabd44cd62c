import { loadEnvironment } from '@baton/config';
import type { LimitOverrides, TenantStore } from '@baton/database';
import type { Messaging } from '@baton/messaging';
import { LimitsService } from './limits.service.js';
import { ControlInMemory } from './token.fixture.js';

const ENV = { DATABASE_URL: 'postgres://x', LIMIT_OPEN_STREAMS: '20', LIMIT_TASKS_WAITING: '100' };

describe('the limits of a tenant', () => {
  const control = new ControlInMemory();
  const set: Record<string, LimitOverrides> = {};
  let reads = 0;
  let service: LimitsService;

  beforeEach(async () => {
    reads = 0;
    set.acme = { openStreams: 5, tasksWaiting: null, weight: 3 };
    const tenants = {
      byId: (id: string) => {
        reads += 1;
        return Promise.resolve(set[id] && { limits: set[id] });
      },
    };
    const environment = loadEnvironment({ ...ENV, TOKEN_CACHE_MS: '60000' });
    service = new LimitsService(
      tenants as Partial<TenantStore> as TenantStore,
      control as Partial<Messaging> as Messaging,
      environment,
    );
    await service.onModuleInit();
  });
  afterEach(() => service.onModuleDestroy());

  it('are what the operator has set, and else the defaults of the environment', async () => {
    expect(await service.of('acme')).toMatchObject({ openStreams: 5, tasksWaiting: null, weight: 3 });
    expect(await service.of('other')).toMatchObject({ openStreams: 20, tasksWaiting: 100, weight: 1 });
    expect((await service.of('other')).requestsPerSecond).toBeNull();
  });

  it('are asked for once, and again as soon as they have changed', async () => {
    await Promise.all([service.of('acme'), service.of('acme')]);
    set.acme = { openStreams: 6 };
    expect((await service.of('acme')).openStreams).toBe(5);
    expect(reads).toBe(1);
    await control.publishControl({ type: 'limits-changed', tenantId: 'other' });
    expect((await service.of('acme')).openStreams).toBe(5);
    await control.publishControl({ type: 'limits-changed', tenantId: 'acme' });
    expect((await service.of('acme')).openStreams).toBe(6);
  });
});
