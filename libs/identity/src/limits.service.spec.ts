import { type LimitOverrides, loadEnvironment } from '@baton/config';
import type { Tenant, TenantStore } from '@baton/database';
import type { Messaging } from '@baton/messaging';
import { until } from '../../../test/support/until.js';
import { LimitsService } from './limits.service.js';
import { ControlInMemory } from './control.fixture.js';

const ENV = { DATABASE_URL: 'postgres://x', LIMIT_OPEN_STREAMS: '20', LIMIT_TASKS_WAITING: '100' };

describe('the limits of a tenant', () => {
  const control = new ControlInMemory();
  const set: Record<string, LimitOverrides> = {};
  const states: Record<string, Partial<Tenant>> = {};
  let reads = 0;
  let service: LimitsService;

  const start = async (tokenCacheMs: string): Promise<void> => {
    reads = 0;
    set.acme = { openStreams: 5, tasksWaiting: null, weight: 3 };
    const tenants = {
      byIds: async (ids: readonly string[]) => {
        reads += 1;
        const lists = { egressAllow: [], egressDeny: [] };
        const active = { suspendedAt: null, suspendedReason: null, deletingAt: null, ...lists };
        const known = ids.filter((id) => set[id]);
        return new Map(known.map((id) => [id, { limits: set[id], ...active, ...states[id] } as Tenant]));
      },
    };
    const environment = loadEnvironment({ ...ENV, TOKEN_CACHE_MS: tokenCacheMs });
    service = new LimitsService(
      tenants as Partial<TenantStore> as TenantStore,
      control as Partial<Messaging> as Messaging,
      environment,
    );
    await service.onModuleInit();
  };
  beforeEach(() => start('60000'));
  afterEach(() => service.onModuleDestroy());

  it('are what the operator has set, and else the defaults of the environment', async () => {
    expect(await service.get('acme')).toMatchObject({ openStreams: 5, tasksWaiting: null, weight: 3 });
    expect(await service.get('other')).toMatchObject({ openStreams: 20, tasksWaiting: 100, weight: 1 });
    expect((await service.get('other')).requestsPerSecond).toBe(200);
  });

  it('have no retention for a tenant that an earlier release has made, unless it has its own', async () => {
    states.acme = { predatesRetention: true };
    expect((await service.get('acme')).retentionDays).toBeNull();
    set.acme = { retentionDays: 7 };
    service.forget('acme');
    expect((await service.get('acme')).retentionDays).toBe(7);
    delete states.acme;
    expect((await service.get('other')).retentionDays).toBe(90);
  });

  it('are asked for once, and again as soon as they have changed', async () => {
    await Promise.all([service.get('acme'), service.get('acme')]);
    set.acme = { openStreams: 6 };
    expect((await service.get('acme')).openStreams).toBe(5);
    expect(reads).toBe(1);
    await control.publishControl({ type: 'limits-changed', tenantId: 'other' });
    expect((await service.get('acme')).openStreams).toBe(5);
    await control.publishControl({ type: 'limits-changed', tenantId: 'acme' });
    expect((await service.get('acme')).openStreams).toBe(6);
  });

  it('come with its state: calls are refused from the moment on at which the operator suspends it', async () => {
    await service.assertActive('acme');
    states.acme = { suspendedAt: new Date(), suspendedReason: 'unpaid bill' };
    await control.publishControl({ type: 'tenant-suspended', tenantId: 'acme' });
    await expect(service.assertActive('acme')).rejects.toMatchObject({
      kind: 'tenant-suspended',
      message: 'the tenant is suspended: unpaid bill',
    });
    expect(await service.isGone('acme')).toBe(false);
    states.acme = { ...states.acme, deletingAt: new Date() };
    await control.publishControl({ type: 'tenant-suspended', tenantId: 'acme' });
    await expect(service.assertActive('acme')).rejects.toMatchObject({ kind: 'unauthenticated' });
    expect(await service.isGone('acme')).toBe(true);
    delete states.acme;
    await control.publishControl({ type: 'limits-changed', tenantId: 'acme' });
    await service.assertActive('acme');
    await expect(service.assertActive('unknown')).rejects.toMatchObject({ kind: 'unauthenticated' });
  });

  it('come with the lists of where its agents may call, which cost no further query', async () => {
    await service.get('acme');
    expect(await service.egress('acme')).toEqual({ allow: [], deny: [] });
    states.acme = { egressAllow: ['*.example.com'], egressDeny: ['10.0.0.0/8'] };
    expect(await service.egress('acme')).toEqual({ allow: [], deny: [] });
    expect(reads).toBe(1);
    await control.publishControl({ type: 'limits-changed', tenantId: 'acme' });
    expect(await service.egress('acme')).toEqual({ allow: ['*.example.com'], deny: ['10.0.0.0/8'] });
    delete states.acme;
  });

  it('come with its names: its slug and its id', async () => {
    states.acme = { slug: 'acme-inc' };
    expect(await service.isNamed('acme', 'acme')).toBe(true);
    expect(await service.isNamed('acme', 'acme-inc')).toBe(true);
    expect(await service.isNamed('acme', 'other')).toBe(false);
    expect(await service.isNamed('unknown', 'acme-inc')).toBe(false);
    delete states.acme;
  });

  it('are read again after TOKEN_CACHE_MS where no process can be notified', async () => {
    service.onModuleDestroy();
    await start('20');
    control.isAway = true;
    expect((await service.get('acme')).openStreams).toBe(5);
    set.acme = { openStreams: 6 };
    await until(async () => (await service.get('acme')).openStreams !== 5);
    expect((await service.get('acme')).openStreams).toBe(6);
    expect(reads).toBeGreaterThanOrEqual(2);
    control.isAway = false;
  });
});
