import type { AuditStore, NewAuditRecord } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { AuditLog } from './audit-log.js';

let written: { tenantId: string; record: NewAuditRecord }[];
let log: AuditLog;

beforeEach(() => {
  jest.spyOn(performance, 'now').mockReturnValue(0);
  written = [];
  const write = async (tenantId: string, record: NewAuditRecord) => void written.push({ tenantId, record });
  log = new AuditLog({ write } as AuditStore, Logger.silent());
});
afterEach(() => jest.restoreAllMocks());

const REFUSED = {
  action: 'signin.refused',
  route: 'GET /v1/agents',
  reason: 'the token is not known',
} as const;
const refuse = (address: string): void =>
  log.refuse({ ...REFUSED, by: { kind: 'unknown', key: 'unknown', address } });
const refuseToken = (tenantId: string, key: string, address: string): void =>
  log.refuse({ ...REFUSED, tenantId, by: { kind: 'token', key, address } });

describe('refused requests', () => {
  it('are recorded as the platform’s, with route and reason', () => {
    refuse('192.0.2.1');
    expect(written).toEqual([
      {
        tenantId: '00000000-0000-0000-0000-000000000000',
        record: {
          action: 'signin.refused',
          outcome: 'refused',
          detail: { reason: 'the token is not known' },
          target: { kind: 'route', name: 'GET /v1/agents' },
          by: { kind: 'unknown', key: 'unknown', address: '192.0.2.1' },
        },
      },
    ]);
  });

  it('of one caller leave room for others, and what is left out is counted', () => {
    for (let i = 0; i < 100; i++) refuse('192.0.2.1');
    expect(written).toHaveLength(5);
    refuse('192.0.2.2');
    expect(written[5]?.record.detail).toMatchObject({ leftOut: 95 });
  });

  it('of one token are few, wherever it is sent from', () => {
    for (let i = 0; i < 100; i++) refuseToken('acme', 'token:1', `198.51.100.${i}`);
    expect(written.map(({ tenantId }) => tenantId)).toEqual(['acme', 'acme', 'acme', 'acme', 'acme']);
  });

  it('of a tenant have room of their own, which is bounded, and say nothing of others', () => {
    for (let i = 0; i < 1_000; i++) refuse(`198.51.100.${i}`);
    for (let i = 0; i < 1_000; i++) refuseToken('acme', `token:${i}`, '192.0.2.1');
    refuseToken('other', 'token:1', '192.0.2.1');
    const of = (tenant: string) => written.filter(({ tenantId }) => tenantId === tenant);
    expect(of('acme')).toHaveLength(60);
    expect(of('other')).toHaveLength(1);
    expect(of('other')[0]?.record.detail).toEqual({ reason: 'the token is not known' });
  });

  it('of many callers are bounded, and recorded again in the next minute', () => {
    for (let i = 0; i < 1_000; i++) refuse(`198.51.100.${i}`);
    expect(written).toHaveLength(60);
    jest.spyOn(performance, 'now').mockReturnValue(60_000);
    refuse('192.0.2.1');
    expect(written[60]?.record.detail).toMatchObject({ leftOut: 940 });
  });
});
