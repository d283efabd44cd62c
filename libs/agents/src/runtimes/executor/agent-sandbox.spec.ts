import { EnvironmentError } from '@baton/config';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { filesInReach, missingSandboxReason } from './agent-sandbox.js';

describe('the sandbox of agents', () => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-reach-'));
  const at = (...names: string[]): string => join(folder, ...names);
  const settings = {
    agentsDir: at('agents'),
    executorSandbox: 'auto' as const,
    executorRead: [at('tools')],
    executorWrite: [at('data')],
  };

  beforeAll(() => {
    for (const name of ['agents', 'tools', 'data', 'keys']) mkdirSync(at(name));
    for (const file of ['agents/.env', 'tools/key', 'data/key', 'keys/key', '.env'])
      writeFileSync(at(file), '');
    symlinkSync(at('tools'), at('link'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('does not hide secrets in folders that agents may use', () => {
    const seen = ['agents/.env', 'tools/key', 'data/key', 'link/key'].map((name) => at(name));
    const hidden = ['keys/key', '.env', 'missing'].map((name) => at(name));
    expect(filesInReach([...seen, ...hidden], settings)).toEqual(seen);
    expect(filesInReach(['/etc/hosts'], settings)).toEqual(['/etc/hosts']);
  });

  it('can be switched off, and required', () => {
    expect(missingSandboxReason({ executorSandbox: 'off' })).toBe('EXECUTOR_SANDBOX is off');
    const platform = Object.getOwnPropertyDescriptor(process, 'platform')!;
    Object.defineProperty(process, 'platform', { value: 'darwin' });
    try {
      expect(missingSandboxReason({ executorSandbox: 'auto' })).toBe('only Linux has one');
      expect(() => missingSandboxReason({ executorSandbox: 'required' })).toThrow(EnvironmentError);
    } finally {
      Object.defineProperty(process, 'platform', platform);
    }
  });
});
