import fc from 'fast-check';
import { ProtocolError } from '../protocol-error.js';
import type { SendMessageRequest } from '../model.js';
import { PROFILES, rpcPaths } from './index.js';
import { assertParts, type Profile, profileFor } from './profile.js';

const paths = rpcPaths();
const at = (path: string) => paths.find((row) => row.path === path)!;

describe('the paths of the profiles', () => {
  it.each([
    ['/agents/:agent', 'message/send', 'spec', '0.3'],
    ['/agents/:agent', 'SendMessage', 'spec', '1.0'],
    ['/v1/a2a/agents/:agent', 'tasks/get', 'arbiter', '0.3'],
    ['/v1/a2a/agents/:agent', 'GetTask', 'arbiter', '1.0'],
    ['/a2a/:agent', 'message/send', 'langsmith', '0.3'],
    ['/a2a', 'tasks/send', 'orloj', '0.1'],
    ['/a2a', 'tasks/get', 'orloj', '0.1'],
    ['/a2a', 'message/stream', 'orloj', '0.3'],
    ['/v1/agent-systems/:agent/a2a', 'tasks/cancel', 'orloj', '0.1'],
    ['/v1/agents/:agent/a2a', 'SendMessage', 'orloj', '1.0'],
    ['/', 'tasks/send', 'society', '0.1'],
    ['/', 'tasks/get', 'capsule', '0.3'],
    ['/', 'message/send', 'capsule', '0.3'],
    ['/', 'SendMessage', 'capsule', '1.0'],
  ])('%s %s is %s in family %s', (path, method, name, version) => {
    const profile = profileFor(at(path), method);
    expect([profile.name, profile.codecFor(method)?.version]).toEqual([name, version]);
  });

  it('are one each, and as many as the contracts have', () => {
    expect(paths).toHaveLength(7);
    expect(profileFor(at('/'), 'nonsense').name).toBe('capsule');
    expect(profileFor(at('/')).name).toBe('capsule');
  });

  it('are shared only by profiles that agree on what comes before the method', () => {
    for (const { profiles } of paths) {
      const before = profiles.map(({ bodyLimit, versionCheck, absentId }) => ({
        bodyLimit,
        versionCheck,
        absentId,
      }));
      expect(new Set(before.map((rules) => JSON.stringify(rules))).size).toBe(1);
    }
  });

  it('S-8 take 1 MiB at the root and on Orloj’s paths, 16 MiB elsewhere', () => {
    const small = paths
      .filter(({ profiles: [profile] }) => profile.bodyLimit === 'small')
      .map(({ path }) => path);
    expect(small.sort()).toEqual(['/', '/a2a', '/v1/agent-systems/:agent/a2a', '/v1/agents/:agent/a2a']);
  });
});

describe('the names of the profiles', () => {
  it('are the keys of their rows', () => {
    for (const [name, profile] of Object.entries<Profile>(PROFILES)) expect(profile.name).toBe(name);
  });
});

describe('A2A-Version', () => {
  it.each(['langsmith', 'orloj', 'society', 'capsule'] as const)('is only validated by %s', (name) => {
    const profile: Profile = PROFILES[name];
    for (const version of [undefined, '', '0.3', '1.0', '1']) profile.resolveVersion(version, 'message/send');
    expect(() => profile.resolveVersion('2.0')).toThrow(ProtocolError);
  });
});

describe('any request at all', () => {
  const METHODS = [
    'tasks/send',
    'tasks/sendSubscribe',
    'tasks/get',
    'tasks/cancel',
    'message/send',
    'message/stream',
    'tasks/resubscribe',
    'tasks/pushNotificationConfig/set',
    'SendMessage',
    'ListTasks',
    'CancelTask',
  ];
  const hostile = fc.oneof(fc.jsonValue(), fc.constant({ toString: 1 }), fc.constant({ length: 3 }));
  const part = fc.oneof(
    hostile,
    fc.dictionary(
      fc.constantFrom('text', 'data', 'file', 'kind', 'type', 'url', 'metadata'),
      fc.oneof(hostile, fc.constantFrom('text', 'data', 'file')),
    ),
  );
  const message = fc.record(
    {
      messageId: fc.oneof(fc.string(), hostile),
      role: fc.oneof(fc.constantFrom('user', 'ROLE_USER'), hostile),
      parts: fc.oneof(fc.array(part), hostile),
      taskId: hostile,
    },
    { requiredKeys: [] },
  );
  const almost = fc.record(
    {
      id: fc.oneof(fc.string(), hostile),
      message: fc.oneof(message, hostile),
      metadata: fc.oneof(fc.dictionary(fc.constantFrom('agent', 'target', 'x'), hostile), hostile),
      reason: hostile,
      sessionId: hostile,
      configuration: hostile,
      historyLength: hostile,
    },
    { requiredKeys: [] },
  );
  const agent = { definition: { inputModes: ['image/*'], skills: [] } } as never;

  it.each(Object.values<Profile>(PROFILES))('is decoded by $name, or refused in its own words', (profile) => {
    fc.assert(
      fc.property(fc.constantFrom(...METHODS), fc.oneof(hostile, almost), (method, params) => {
        const codec = profile.codecFor(method);
        if (!codec) return;
        try {
          const call = codec.decode(method, params);
          profile.chooseAgent({ params, call });
          assertParts(profile.parts, (call.request as Partial<SendMessageRequest>).message, agent);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
          expect(['invalid-params', 'content-type-not-supported']).toContain((error as ProtocolError).kind);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
